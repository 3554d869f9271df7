"""The Makefile installs what it is asked for, whatever was installed before; a release is checked by every command."""

import os
import re
import subprocess
import time
import tomllib

import pytest

from bootdqn.cli.main import COMMANDS
from oldest_versions import oldest_versions
from reference.documents import ROOT
from release_check import SMOKE


@pytest.fixture
def project(tmp_path):
    """A directory with the project's Makefile in which `make demo` has installed everything already."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / ".venv").mkdir()
    make(tmp_path, "--touch", "install")
    return tmp_path


VARIABLES = re.findall(r"^(\w+) \?= ", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
"""Variables that can be given to make, which hands them to the tests."""


def make(project, *words):
    """Run make as from a shell, also where the tests themselves were started by a make with arguments."""
    given = {"MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", *VARIABLES}
    inherited = {name: value for name, value in os.environ.items() if name not in given}
    return subprocess.run(
        ["make", *words], cwd=project, check=True, capture_output=True, text=True, env=inherited
    ).stdout


def commands(project, *goals):
    """Return what make would run."""
    return make(project, "--dry-run", *goals)


def test_what_is_installed_is_not_installed_again(project):
    assert "pip install" not in commands(project, "install")
    assert "pip install" not in commands(project, "test", "demo", "check")


def test_extras_that_were_not_asked_for_before_are_installed(project):
    assert "-e '.[dev,examples]'" in commands(project, "install", "EXTRAS=dev,examples")
    assert "-e '.[dev,examples]'" in commands(project, "check", "test", "EXTRAS=dev,examples")
    assert "-e '.[dev,bench]'" in commands(project, "bench")


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_change_of_what_is_needed_is_installed(project, name):
    later = time.time() + 10
    os.utime(project / name, (later, later))
    assert "-e '.[dev]'" in commands(project, "install")


@pytest.mark.parametrize(
    ("goal", "venv", "constraints"),
    [("test-oldest", ".venv-oldest", "build/oldest.txt"), ("test-newest", ".venv-newest", "/dev/null")],
)
def test_other_versions_are_installed_into_environments_of_their_own(project, goal, venv, constraints):
    done = commands(project, goal)
    assert f"{venv}/bin/python -m pip install --quiet --disable-pip-version-check -c {constraints} -e '.[dev]'" in done
    assert f"{venv}/bin/python -m pytest" in done
    assert " .venv/" not in done


def test_the_oldest_versions_are_the_lower_bounds_of_all_direct_dependencies():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = oldest_versions(project, ["dev"])
    assert found.keys() > {"torch", "numpy", "ray", "ale-py", "pytest", "imageio"}  # own, of an extra, of its extras
    assert oldest_versions(project, []).keys() < found.keys()
    assert "bootdqn" not in found


@pytest.mark.parametrize("line", ["numpy", "numpy>=2,<3", "numpy==2.0", "numpy>=2.1"])
def test_a_dependency_without_one_lower_bound_is_an_error(line):
    project = {"name": "p", "dependencies": ["numpy>=2.0"], "optional-dependencies": {"extra": [line]}}
    with pytest.raises(ValueError, match="lower bound"):
        oldest_versions(project, ["extra"])


def test_the_check_of_a_release_tries_every_command():
    tried = {tuple(arguments.split()[: 2 if arguments.startswith("train") else 1]) for arguments, _, _ in SMOKE}
    commands = {(name,) for name in COMMANDS if name != "train"} | {("train", name) for name in COMMANDS["train"]}
    assert tried - {("--version",), ("--help",)} == commands
