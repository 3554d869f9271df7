"""The agents that come with the repository: each loads, and scores as its card states."""

import json
import re
import shlex

import numpy as np
import pytest

import bootdqn
from bootdqn.cli.main import parse
from bootdqn.config.settings import differences, to_flat
from bootdqn.config.train import resolve
from reference.documents import ROOT, blocks

AGENTS = sorted(path.parent for path in (ROOT / "agents").glob("*/README.md"))
ROW = re.compile(r"^\| (\d*) \| .* \| (-?[\d.]+) \|$", re.MULTILINE)
CARDS = [(agent, *row) for agent in AGENTS for row in ROW.findall((agent / "README.md").read_text(encoding="utf-8"))]


@pytest.mark.parametrize(("agent", "weights", "score"), CARDS, ids=lambda value: getattr(value, "name", value))
def test_an_agent_scores_as_its_card_states(agent, weights, score, tmp_path):
    """On another kind of processor a near tie of the vote may end otherwise: one episode of those played may differ."""
    before = {path: path.stat().st_mtime_ns for path in agent.rglob("*")}
    found = bootdqn.evaluate(agent, weights=weights or None, json=tmp_path / "result.json", progress=False)
    one_episode = np.abs(found.returns).max() / len(found.returns)
    assert np.mean(found.returns) == pytest.approx(float(score), abs=one_episode)
    assert json.loads((tmp_path / "result.json").read_text())["mean_return"] == np.mean(found.returns)
    assert {path: path.stat().st_mtime_ns for path in agent.rglob("*")} == before, "nothing is written beside the agent"


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
def test_the_command_of_a_card_is_that_of_the_configuration(agent):
    command = shlex.split(blocks(agent / "README.md")[0].text)
    parsed = parse(command[1:])
    assert differences(to_flat(resolve(parsed.config)), json.loads((agent / "config.json").read_text())) == {}
    assert str(parsed.run_dir) == f"agents/{agent.name}"


def test_every_agent_has_a_card_and_a_row_and_they_are_small():
    directories = sorted(path for path in (ROOT / "agents").iterdir() if path.is_dir())
    assert directories == AGENTS
    table = (ROOT / "agents/README.md").read_text(encoding="utf-8")
    assert all(f"({agent.name}/README.md)" in table for agent in AGENTS)
    assert sum(path.stat().st_size for path in (ROOT / "agents").rglob("*") if path.is_file()) < 15_000_000
    assert not list((ROOT / "agents").rglob("provenance.json")), "they name the machine"
