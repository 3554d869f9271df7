"""The page about the Python interface names everything that is public; `tests/test_docs.py` runs its code."""

import re

import pytest

import bootdqn
from bootdqn.envs import ENTRY_POINTS
from reference.documents import ROOT

TEXT = (ROOT / "docs/python-api.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", bootdqn.__all__)
def test_every_public_name_is_on_the_page(name):
    assert re.search(rf"\bbootdqn\.{name}\b", TEXT)


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_every_environment_of_the_package_is_on_the_page(name):
    assert f'"{name}"' in TEXT
