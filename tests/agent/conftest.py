"""Small networks learn fastest on one thread, above all on a machine that is shared."""

import pytest

from reference.threads import torch_threads


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    with torch_threads(1):
        yield
