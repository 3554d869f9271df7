"""The page on presets: its table is that of the code."""

import re

import pytest

from bootdqn.config.defaults import EXPLORER
from reference.documents import ROOT

TEXT = (ROOT / "docs/presets.md").read_text(encoding="utf-8")
COLUMNS = (("deep-sea",), ("bsuite",), ("gym",), ("atari", "minatar"))
ROWS = [line.strip("| ").split("|") for line in TEXT.splitlines() if line.startswith("| `--")]
TABLE = {
    (cells[0].strip().strip("`").removeprefix("--").replace("-", "_"), kind): cells[1 + column].strip().strip("`")
    for cells in [[*row, *[""] * len(COLUMNS)] for row in ROWS]
    for column, kinds in enumerate(COLUMNS)
    for kind in kinds
}


@pytest.mark.parametrize("kind", EXPLORER)
def test_the_table_lists_what_explorer_sets(kind):
    written = {name: cell for (name, of), cell in TABLE.items() if of == kind and cell}
    code = {name: f"{value:,}" if isinstance(value, int) else str(value) for name, value in EXPLORER[kind].items()}
    assert written == code


def test_every_setting_of_a_preset_is_a_row():
    assert {name for name, _ in TABLE} == {name for settings in EXPLORER.values() for name in settings}
    header = next(line for line in TEXT.splitlines() if line.startswith("| setting |"))
    listed = [re.findall(r"`([\w-]+)`", cell) for cell in header.strip("| ").split("|")[1:]]
    assert [[kind for kind in cell if kind != "minigrid"] for cell in listed] == [list(kinds) for kinds in COLUMNS]
