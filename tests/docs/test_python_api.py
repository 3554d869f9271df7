"""The pages about the Python interface name everything that is public; `tests/test_docs.py` runs their code."""

import re

import pytest

import bootdqn
from bootdqn.envs import ENTRY_POINTS
from reference.documents import ROOT

TEXT = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("formulas.md", "python-api.md"))


@pytest.mark.parametrize("name", bootdqn.__all__)
def test_every_public_name_is_on_a_page(name):
    assert re.search(rf"\bbootdqn\.{name}\b", TEXT)


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_every_environment_of_the_package_is_on_a_page(name):
    assert f'"{name}"' in TEXT
