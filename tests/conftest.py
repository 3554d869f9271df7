"""How tests run: property tests without a clock, and no test that silently does not run in CI."""

import json
import os
import random
import signal
import sys

import pytest
from hypothesis import settings

settings.register_profile("bootdqn", deadline=None, derandomize=True, max_examples=100, print_blob=False)
settings.load_profile("bootdqn")
pytest.register_assert_rewrite("reference")  # an assertion there that fails shows its values, as in a test

for _stop, _handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(_stop) is signal.SIG_IGN:  # as in the background of a script; commands under test inherit it
        signal.signal(_stop, _handler)


def pytest_addoption(parser):
    parser.addoption("--torture", action="store_true", help="let tests/torture do all it can, for many minutes")
    parser.addoption("--shuffle", type=int, metavar="SEED", help="run files, and the tests of each, in a random order")


def pytest_xdist_auto_num_workers():
    """Return the workers for `-n auto`: more than cores, because tests of child processes mostly wait.

    Not many more: the tests on Ray run one after the other, and take longest of all where the cores are crowded.
    """
    return len(os.sched_getaffinity(0)) * 3 // 2


def pytest_collection_modifyitems(config, items):
    """Run the tests on Ray first, which take longest; or shuffle files, and the tests of each, where asked to."""
    seed = config.getoption("--shuffle")
    if seed is None:
        items.sort(key=lambda item: item.path.name != "test_ray.py")
    else:
        keys = {path: random.Random(f"{seed} {path}").random() for path in {item.path for item in items}}
        items.sort(key=lambda item: (keys[item.path], random.Random(f"{seed} {item.nodeid}").random()))


@pytest.fixture(scope="session")
def sized(request):
    """Return a function that picks the small or, with --torture, the large one of two counts."""
    torture = request.config.getoption("--torture")
    return lambda small, large: large if torture else small


@pytest.fixture
def path(tmp_path):
    """The directory of a run that is still to be made."""
    return tmp_path / "run"


@pytest.fixture
def one_thread():
    from reference.threads import torch_threads

    with torch_threads(1):
        yield


@pytest.fixture(scope="session")
def unbroken(tmp_path_factory):
    """Return a function that returns the results of a run with these settings that nothing happens to."""
    from reference.faults import results, train

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
def user_code(tmp_path, monkeypatch):
    """Code of a user's own in the current directory, which is a temporary one; all is forgotten at the end."""
    from reference.user_code import UserCode

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    code = UserCode(tmp_path)
    yield code
    code.forget()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """In CI a skipped test is a failed one: everything it needs is installed there, but a GPU."""
    report = yield
    expected = hasattr(report, "wasxfail") or item.get_closest_marker("gpu")
    if report.skipped and not expected and os.environ.get("CI"):
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} was skipped, and CI must run every test: {report.longrepr}"
    return report
