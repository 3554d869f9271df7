"""Parametrisation of tests: each of several strategies, in each of several libraries."""

import pytest


def every(strategies):
    """Run a test with each of the strategies."""
    return pytest.mark.parametrize("strategy", strategies, ids=str)


def in_every(libraries):
    """Run a test with the arrays of each library."""
    return pytest.mark.parametrize("library", libraries, ids=lambda library: library.name)
