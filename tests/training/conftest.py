"""What the tests of runs that something goes wrong with share."""

import json

import pytest

from reference.faults import results, train
from reference.threads import torch_threads


@pytest.fixture
def one_thread():
    with torch_threads(1):
        yield


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
