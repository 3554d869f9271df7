"""Print the oldest direct dependencies that pyproject.toml admits, as constraints for pip.

python tests/oldest_versions.py dev,bench
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"
REQUIREMENT = re.compile(r"(?P<name>[\w-]+)(?:\[(?P<extras>[\w,-]+)\])?(?:>=(?P<version>[\w.]+))?")


def oldest_versions(project: dict, extras: list[str]) -> dict[str, str]:
    """Return the lower bound of every direct dependency of a project with `extras`, by name.

    Raises:
        ValueError: A dependency has another bound than one lower bound.
    """
    optional = project["optional-dependencies"]
    pending = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    versions: dict[str, str] = {}
    for line in pending:
        parts = REQUIREMENT.fullmatch(line)
        if parts and parts["name"] == project["name"] and parts["extras"]:
            pending += (line for extra in parts["extras"].split(",") for line in optional[extra])
        elif parts and parts["version"]:
            if versions.setdefault(parts["name"], parts["version"]) != parts["version"]:
                raise ValueError(
                    f"{parts['name']} has two lower bounds, {parts['version']} and {versions[parts['name']]}"
                )
        else:
            raise ValueError(f"{line} in pyproject.toml is not one package with one lower bound")
    return versions


if __name__ == "__main__":
    found = oldest_versions(tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"], sys.argv[1].split(","))
    print("\n".join(f"{name}=={version}" for name, version in sorted(found.items())))
