"""Configuration of the documentation site: `make docs` builds it from the pages, the notebooks and the docstrings.

The source directory is the repository, so that a link works the same on a Git host and on the site. Navigation and the
API reference are the only parts that the site adds.
"""

import re
import shutil
from dataclasses import is_dataclass
from fnmatch import fnmatch
from itertools import chain
from pathlib import Path
from typing import get_type_hints

from sphinx.application import Sphinx
from sphinx.util import logging

import bootdqn.config.agent
import bootdqn.config.envs
import bootdqn.config.train

project = "bootdqn"
author = "The bootdqn authors"
version = release = bootdqn.__version__
html_title = f"bootdqn {version}"

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
root_doc = "README"
include_patterns = [
    "*.md",
    "docs/**.md",
    "docs/site/*.rst",
    "agents/**README.md",
    "examples/**README.md",
    "examples/notebooks/*.ipynb",
    "reproduction/README.md",
]
exclude_patterns = [".*", "build", "dist", "runs", "reproduction/results", "src", "tests", "benchmarks"]

NAVIGATION = {
    "Start": [
        "docs/README",
        "docs/installation",
        "docs/how-do-i",
        "docs/how-do-i-experiments",
        "docs/presets",
        "docs/what-helps",
    ],
    "Try": ["docs/site/minimal-bootdqn", "examples/README", "examples/**", "agents/README", "agents/**"],
    "Use": [
        "docs/formulas",
        "docs/python-api",
        "docs/data",
        "docs/experiments",
        "docs/cluster",
        "docs/devices",
        "docs/report",
        "docs/inspector",
        "docs/run-directory",
        "docs/adding-a-strategy",
        "docs/adding-an-environment",
    ],
    "API reference": [
        f"docs/site/api-{name}" for name in ("formulas", "strategies", "runs", "settings", "environments", "agent")
    ],
    "Environments": [
        "docs/deep-sea",
        "docs/atari",
        "docs/minatar",
        "docs/bsuite",
        "docs/minigrid",
        "docs/gymnasium",
        "docs/two-paths",
    ],
    "Algorithms": ["docs/specification", "docs/algorithms/README", "docs/algorithms/*"],
    "Results": ["docs/reproduction", "docs/reproduction/*", "reproduction/README"],
    "Project": [
        "docs/design",
        "docs/reliability",
        "docs/untrusted-files",
        "docs/speed",
        "docs/speed-atari",
        "CONTRIBUTING",
        "CHANGELOG",
    ],
}
"""Captions and pages of the side bar. Pages that no entry names come last, under "More"."""

html_theme = "furo"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # it would fetch the pages, which needs a server
html_show_copyright = False
html_theme_options = {"navigation_with_keys": True}

myst_heading_anchors = 4
myst_links_external_new_tab = False
nb_execution_mode = "off"  # the tests execute the notebooks; the site shows the outputs that are committed
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
default_role = "literal"  # docstrings mark code by single backticks, as Markdown does
python_maximum_signature_line_length = 100
_COLON = "\ue000"


def add_navigation(app: Sphinx, page: str, source: list[str]) -> None:
    """Append the side bar's tables of contents to the front page."""
    if page == root_doc:
        patterns = [root_doc, *chain.from_iterable(NAVIGATION.values())]
        more = sorted(one for one in app.env.found_docs if not any(fnmatch(one, pattern) for pattern in patterns))
        for caption, entries in (NAVIGATION | ({"More": more} if more else {})).items():
            pages = "\n".join(entries)
            source[0] += f"\n```{{toctree}}\n:hidden:\n:glob:\n:caption: {caption}\n\n{pages}\n```\n"


def show_plain_types(_app: Sphinx) -> None:
    """Take the ranges out of the types of settings; a reader wants `int`."""
    for module in (bootdqn.config.agent, bootdqn.config.envs, bootdqn.config.train):
        for one in filter(is_dataclass, vars(module).values()):
            plain = get_type_hints(one)
            for annotations in (one.__annotations__, one.__init__.__annotations__):
                annotations.update({name: plain[name] for name in annotations if name in plain})


def mark_formulas(_app: Sphinx, what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Make the indented blocks of a docstring, which are formulas and drawings, literal, as Markdown does."""
    marked: list[str] = []
    in_section = in_block = False
    for line in lines:
        if line and not line.startswith(" "):
            in_section, in_block = re.fullmatch(r"[A-Z]\w+:", line) is not None, False
        elif line.startswith("    ") and not (in_section or in_block) and marked and not marked[-1]:
            marked += [".. code-block:: text", ""]
            in_block = True
        marked.append(line)
    lines[:] = marked
    if what == "attribute":  # napoleon would read "a: b" as a type and its description
        lines[:1] = [lines[0].replace(":", _COLON)]


def restore_colons(_app: Sphinx, _what: str, _name: str, _object: object, _options: object, lines: list[str]) -> None:
    """Undo what `mark_formulas` does to the colons of attributes."""
    lines[:] = [line.replace(_COLON, ":") for line in lines]


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Copy the front page to index.html; fail if a page needs a network, or a public name has no entry."""
    if exception is not None or app.builder.format != "html":
        return
    out = Path(app.outdir)
    shutil.copyfile(out / f"{root_doc}.html", out / "index.html")
    external = re.compile(r'<(?:script|link|img|iframe)\b[^>]*?\b(?:src|href)="(?:https?:)?//[^"]*"')
    problems = [
        f"{page.relative_to(out)} loads something from elsewhere: {found[0]}"
        for page in out.rglob("*.html")
        if (found := external.search(page.read_text(encoding="utf-8")))
    ]
    documented = app.env.domaindata["py"]["objects"]
    missing = [name for name in bootdqn.__all__ if f"bootdqn.{name}" not in documented]
    problems += [f"docs/site/api-*.rst: no entry for bootdqn.{name}" for name in missing]
    for problem in problems:
        logging.getLogger(__name__).warning(problem)
        app.statuscode = 1


def setup(app: Sphinx) -> None:
    """Connect the hooks."""
    app.connect("builder-inited", show_plain_types)
    app.connect("source-read", add_navigation)
    app.connect("autodoc-process-docstring", mark_formulas, priority=400)  # before napoleon reads the sections
    app.connect("autodoc-process-docstring", restore_colons, priority=600)
    app.connect("build-finished", finish)
