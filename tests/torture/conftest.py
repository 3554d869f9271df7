"""Tests that take minutes run with --torture only; the others do less without it."""

ONLY_WITH_TORTURE = ("test_partition.py",)


def pytest_ignore_collect(collection_path, config):
    return True if collection_path.name in ONLY_WITH_TORTURE and not config.getoption("--torture") else None
