"""What the tests of runs that something goes wrong with share."""

import json

import pytest
import torch

from reference.faults import results, train


@pytest.fixture
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory):
    """Return a function that tells what comes out of a run with these settings that nothing happens to."""
    known = {}

    def results_of_an_unbroken_run(settings):
        key = json.dumps(settings)
        if key not in known:
            path = tmp_path_factory.mktemp("unbroken")
            train(settings, path)
            known[key] = results(path)
        return known[key]

    return results_of_an_unbroken_run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run"
