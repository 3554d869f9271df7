"""The notebooks: every cell runs, in the order on the page, and they show outputs that come from such a run."""

import json
import re
import shutil

import matplotlib as mpl
import matplotlib.pyplot as plt
import pytest

from reference.documents import ROOT

NOTEBOOKS = sorted((ROOT / "examples/notebooks").glob("*.ipynb"))


def cells(notebook, kind="code"):
    return [cell for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def printed_by(cell):
    """Return the text that the cell printed when the notebook was last executed."""
    return "".join("".join(output.get("text", "")) for output in cell["outputs"])


@pytest.fixture
def beside_agents(tmp_path, monkeypatch):
    """A copy of the directory of the notebooks, as the current one, with the agents where they expect them."""
    here = tmp_path / "examples/notebooks"
    here.mkdir(parents=True)
    shutil.copytree(ROOT / "agents", tmp_path / "agents")
    monkeypatch.chdir(here)
    monkeypatch.setitem(mpl.rcParams, "backend", "agg")
    monkeypatch.setattr(plt, "show", lambda: plt.close("all"))


@pytest.mark.usefixtures("beside_agents")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs_and_prints_what_the_notebook_shows(notebook, capsys):
    names = {"__name__": "__main__"}
    for number, cell in enumerate(cells(notebook)):
        exec(compile(source(cell), f"{notebook.name}, code cell {number}", "exec"), names)
        printed, shown = capsys.readouterr().out, printed_by(cell)
        assert words(printed) == words(shown)


def words(text):
    """Return the text without its numbers: those of a training loop depend on the kind of processor."""
    return re.sub(r"[\d.,%\[\]\s-]+|None", " ", text)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_outputs_are_there_complete_and_without_traces_of_a_machine(notebook):
    code = cells(notebook)
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    assert not any(output["output_type"] == "error" for cell in code for output in cell["outputs"])
    assert any("image/png" in output.get("data", {}) for cell in code for output in cell["outputs"])
    assert not re.search(r"/home/|/root/|/tmp/|/work/|\.venv", notebook.read_text(encoding="utf-8"))
    assert notebook.stat().st_size < 300_000


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_links_of_a_notebook_lead_somewhere(notebook):
    targets = re.findall(r"\]\((?!http)([^)#]*)", "\n".join(map(source, cells(notebook, "markdown"))))
    assert targets
    assert all((notebook.parent / target).exists() for target in targets)
