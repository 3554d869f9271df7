"""The examples, run as a user runs them: each ends well, and what it prints could not come from a broken one."""

import importlib.util
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import bootdqn
from reproduction.archive import unpacked

EXAMPLES = Path(__file__).parents[2] / "examples"

needs_bsuite = pytest.mark.xfail(
    any(importlib.util.find_spec(module) is None for module in ("bsuite", "haiku", "optax", "rlax")),
    reason="bsuite's stack (260 MB) is not in dev; to run this: pip install -c constraints.txt -e '.[dev,examples]'",
    run=False,
)


def printed_by(name):
    """Return what the example prints, or fail with what it complains of."""
    ended = subprocess.run([sys.executable, EXAMPLES / name], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def overruled(text):
    """Return the percentages of steps in which the active head was overruled, in the order they are printed."""
    return [float(share) for share in re.findall(r"overruled in ([\d.]+)% of the steps", text)]


def test_tables_of_numpy_cross_the_lake():
    printed = printed_by("tabular_numpy.py")
    assert re.findall(r"(\w+): success rate of the vote (\d+)%", printed) == [("greedy", "100"), ("evoi", "100")]
    greedy, evoi = overruled(printed)
    assert greedy == 0
    assert evoi > 5


def test_stable_baselines3_learns_with_evoi():
    printed = printed_by("stable_baselines3_ensemble.py")
    returns = {name: float(value) for name, value in re.findall(r"(random|greedy|evoi): ([\d.]+)", printed)}
    assert returns["evoi"] > 2 * returns["random"]
    greedy, evoi = overruled(printed)
    assert greedy == 0
    assert evoi > 1


@needs_bsuite
def test_the_agent_of_bsuite_learns_with_evoi():
    last = re.findall(r"EVOI: .*among the last 20: (\d+) of 20, (\d+) of 20", printed_by("bsuite_boot_dqn.py"))
    assert [int(count) >= 15 for count in last[0]] == [True, True]


@needs_bsuite
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the libraries that bsuite's agent is made of
def test_the_agent_of_bsuite_acts_by_evoi():
    best_action = runpy.run_path(str(EXAMPLES / "bsuite_boot_dqn.py"))["best_action"]
    q = np.random.default_rng(0).normal(size=(50, 5, 3)).astype(np.float32)
    chosen = [int(best_action(state[2], list(state))) for state in q]
    assert chosen == bootdqn.Evoi(reduce="sum").select(q, np.full(50, 2)).tolist()
    assert chosen != q[:, 2].argmax(axis=-1).tolist()


def test_the_figures_of_the_page_about_data_are_plotted_by_its_code(tmp_path):
    program = runpy.run_path(str(EXAMPLES / "plot_results.py"))
    program["main"](unpacked("deep-sea-every-step"), unpacked("atari-alien-longer"), tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"data-results.png", "data-metrics.png"}
    page = (EXAMPLES.parent / "docs/data.md").read_text(encoding="utf-8")
    code = "\n".join(line.strip() for line in (EXAMPLES / "plot_results.py").read_text(encoding="utf-8").splitlines())
    first, second, _ = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert first in code
    assert second in code
