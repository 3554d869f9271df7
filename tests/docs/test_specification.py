"""The specification: its table of defaults is that of the code."""

import re
from dataclasses import replace

import pytest

from bootdqn.config.defaults import DEEP_SEA
from bootdqn.config.settings import default_settings
from bootdqn.config.train import resolve
from reference.documents import ROOT

TEXT = (ROOT / "docs/specification.md").read_text(encoding="utf-8")
DEFAULTS = {kind: settings for kind, settings in default_settings().items() if kind != "bsuite"}
"""bsuite has a page of its own."""
ROW = re.compile(r"^\| `--([\w-]+)` \| (.*) \|$", re.MULTILINE)
TABLE = {
    name.replace("-", "_"): dict(zip(DEFAULTS, cells.split(" | "), strict=True)) for name, cells in ROW.findall(TEXT)
}
OURS = {
    ("before_learning", "deep-sea"),
    ("before_learning", "atari"),
    *((name, "deep-sea") for name in ("loss", "discount", "learning_starts", "update_every", "target_every")),
    *((name, "atari") for name in ("max_over_frames", "sticky", "full_action_space")),
    *((name, "atari") for name in ("terminal_on_life_loss", "max_episode_frames")),
}
"""What the paper leaves open and this project decided; all of minatar and gym is, and is not marked."""


def written(value):
    """Return a default as the table writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value).lower()


@pytest.mark.parametrize("kind", DEFAULTS)
@pytest.mark.parametrize("name", TABLE)
def test_a_default_in_the_table_is_that_of_the_code(name, kind):
    cell = TABLE[name][kind]
    if name not in DEFAULTS[kind]:
        assert cell == "-"
    elif (name, kind) in {("update_every", "deep-sea"), ("target_every", "deep-sea")}:
        assert cell.startswith("`N` ")
        assert getattr(resolve(replace(DEEP_SEA, env=replace(DEEP_SEA.env, size=7))).learner, name) == 7
    else:
        assert re.match(r"`(.*?)`", cell)[1] == written(DEFAULTS[kind][name])


def test_every_setting_whose_default_depends_on_the_environment_is_in_the_table():
    shared = set.intersection(*map(set, DEFAULTS.values())) - {"environment"}
    assert {name for name in shared if len({str(of_kind[name]) for of_kind in DEFAULTS.values()}) > 1} <= set(TABLE)


def test_our_own_choices_are_marked_and_no_others():
    marked = {(name, kind) for name, cells in TABLE.items() for kind, cell in cells.items() if "**ours**" in cell}
    assert marked == OURS
