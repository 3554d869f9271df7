"""The version of the package is the same wherever it is written, and the changelog begins with it."""

import re
import tomllib

import bootdqn
from reference.documents import ROOT


def test_the_version_is_the_same_everywhere():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    (citation,) = re.findall(r"^version: (.*)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    versions = re.findall(r"^## (\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert bootdqn.__version__ == project == citation == versions[0]


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text()
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= {"Added", "Changed", "Fixed", "Removed"}
    for version in text.split("\n## ")[1:]:
        assert len(version.splitlines()) <= 60, version.splitlines()[0]
