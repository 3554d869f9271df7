"""The example of a user strategy: the commands of its README run, and print what it shows."""

import json
import shutil

import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.exploration.strategies import Greedy
from reference.documents import ROOT, blocks, commands, run_as_console_script
from reference.q_values import exact_q_with_heads

EXAMPLE = ROOT / "examples/own_strategy"


@pytest.fixture
def directory(tmp_path):
    for file in EXAMPLE.iterdir():
        if file.is_file():
            shutil.copy(file, tmp_path)
    return tmp_path


def test_the_commands_of_the_readme_run(directory, user_code, capsys):
    """The first as the installed script does, the others as in a process that has imported nothing yet."""
    first, *others = commands(*blocks(directory / "README.md"))
    run_as_console_script(first, directory)
    for command in others:
        user_code.forget()
        assert run_command_line(command) == 0, capsys.readouterr().err
    assert "report.html" in capsys.readouterr().out
    assert "hopeful" in (directory / "runs/compare/report.html").read_text()
    assert (directory / "runs/inspect.html").exists()
    class_paths = {}
    for file in (directory / "runs/compare").rglob("config.json"):
        config = json.loads(file.read_text())
        class_paths.setdefault(config["strategy"], set()).add(config["strategy_from"])
    mine = {"my_strategy.Hopeful"}
    assert class_paths == {"greedy": {None}, "evoi:reduce=sum": {None}, "hopeful": mine, "hopeful:hope=1.0": mine}


def test_without_hope_it_is_bootdqn_to_the_byte(directory, user_code):
    user_code.load_strategy("my_strategy.Hopeful")
    small = [
        "train",
        "deep-sea",
        "--size",
        "4",
        "--update-every",
        "1",
        "--num-heads",
        "4",
        "--max-episodes",
        "40",
        "--quiet",
    ]
    for strategy in ("greedy", "hopeful:hope=0"):
        assert run_command_line([*small, "--strategy", strategy, "--run-dir", strategy]) == 0
    one, other = ((directory / name / "metrics.jsonl").read_bytes() for name in ("greedy", "hopeful:hope=0"))
    assert one == other


@pytest.mark.usefixtures("directory")
def test_with_all_hope_an_action_is_worth_what_its_best_head_thinks(user_code):
    from hypothesis import given

    hopeful = user_code.load_strategy("my_strategy.Hopeful")

    @given(exact_q_with_heads())
    def check(q_and_heads):
        q, head = q_and_heads
        best = [max(column) for state in q.reshape(-1, *q.shape[-2:]) for column in state.T.tolist()]
        assert hopeful(1.0).scores(q, head).ravel().tolist() == best
        assert (hopeful(0.0).scores(q, head) == Greedy().scores(q, head)).all()

    check()


def test_hope_is_a_share(user_code, directory):
    hopeful = user_code.load_strategy("my_strategy.Hopeful")
    assert directory
    for bad in (-0.1, 1.1, float("nan")):
        with pytest.raises(ValueError, match="hope must be in"):
            hopeful(bad)
