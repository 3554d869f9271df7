"""The pages about the algorithms: flags, defaults, commands, keys and numbers on them are those of the code."""

import json
import re
import shlex
from dataclasses import fields
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.cli.evaluate import EvaluateCommand
from bootdqn.cli.main import parse, run_command_line
from bootdqn.cli.train import TrainCommand, TrainingOptions
from bootdqn.config.settings import default_settings
from bootdqn.config.train import LoggerConfig, SavingConfig
from bootdqn.exploration.registry import parse_strategy
from bootdqn.exploration.strategies import STRATEGIES, Boltzmann, Vote
from bootdqn.exploration.voting import VoteRule, vote
from bootdqn.training.metrics import Clock
from reproduction.archive import read_rows

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "docs/algorithms"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.md"))}
INDEX, METRICS = PAGES["README.md"], PAGES["metrics.md"]
DEFAULTS = default_settings()
OPTIONS = {
    field.name
    for part in (TrainingOptions, SavingConfig, LoggerConfig, TrainCommand, EvaluateCommand)
    for field in fields(part)
}


def rows(text):
    """Return the cells of every row of every table in a text, without headings."""
    lines = re.sub(r"^\|.*\n\|[-|]+\|$", "", text, flags=re.MULTILINE).splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines if line.startswith("|")]


def sections(text):
    """Return what stands below each heading of a page, by heading."""
    parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def commands(text):
    """Return the command lines in the shell blocks of a page, each as its arguments after `bootdqn`."""
    blocks = re.findall(r"^```sh\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    words = [shlex.split(line, comments=True) for line in lines]
    assert all(line[0] == "bootdqn" for line in words)
    return [line[1:] for line in words]


def plain(cell):
    return cell.strip("`")


def default_cell(values):
    """Return how a table writes defaults by environment: once where they are all the same."""
    if len(set(map(str, values.values()))) == 1:
        return f"`{next(iter(values.values()))}`"
    return ", ".join(f"`{value}` {kind}" for kind, value in values.items())


ALL_COMMANDS = [(name, command) for name, text in PAGES.items() for command in commands(text)]
DEFAULT_ROWS = [(name, *row[:2]) for name, text in PAGES.items() for row in rows(text) if row[0].startswith("`--")]


@pytest.mark.parametrize(("page", "arguments"), ALL_COMMANDS, ids=lambda value: str(value)[:80])
def test_a_command_on_a_page_is_one(page, arguments):
    assert parse(arguments) is not None, page


def test_every_page_of_an_algorithm_has_a_command():
    assert {name for name, _ in ALL_COMMANDS} == set(PAGES) - {"README.md", "metrics.md"}


def test_every_flag_on_the_pages_exists():
    settings = {name: value for kind in DEFAULTS for name, value in DEFAULTS[kind].items()}
    known = {f"--{name.replace('_', '-')}" for name in {*settings, *OPTIONS} - {"environment", "options", "config"}}
    known |= {f"--no-{name.replace('_', '-')}" for name, value in settings.items() if isinstance(value, bool)}
    named = {(page, flag) for page, text in PAGES.items() for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", text)}
    assert len(named) > 50
    assert [(page, flag) for page, flag in sorted(named) if flag not in known] == []


@pytest.mark.parametrize(("page", "flag", "cell"), DEFAULT_ROWS)
def test_a_default_on_a_page_is_that_of_the_command_line(page, flag, cell):
    name = plain(flag).removeprefix("--").replace("-", "_")
    assert cell == default_cell({kind: flat[name] for kind, flat in DEFAULTS.items() if name in flat}), page


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: strategy.name)
def test_every_strategy_has_a_page_with_its_parameters_and_a_command(strategy):
    listed = {plain(flag).removeprefix("--strategy "): page for page, flag, _ in rows(sections(INDEX)["Strategies"])}
    page = PAGES[re.fullmatch(r"\[(.*)\]\(\1\)", listed[strategy.name])[1]]
    used = [parse(arguments).config.actor.strategy for arguments in commands(page)]
    assert strategy in [type(parse_strategy(one)) for one in used]
    flags = sections(page)["Flags"]
    stated = {plain(row[0]): plain(row[1]) for row in rows(flags) if not row[0].startswith("`--")}
    assert stated == {field.name: str(field.default) for field in fields(strategy)}


def test_every_page_is_in_the_index_and_nothing_else():
    linked = re.findall(r"^\| \[(.*?)\]\(.*?\) \|", INDEX, flags=re.MULTILINE)
    assert sorted([*linked, "README.md", "metrics.md"]) == sorted(PAGES)


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!http)(.*?)\)", PAGES[page]):
        name, _, anchor = target.partition("#")
        path = FOLDER / (name or page)
        assert path.exists(), target
        headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert not anchor or anchor in {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("line", [plain(cells[0]) for cells in rows(sections(INDEX)["How they combine"])])
def test_combinations_that_the_index_lists_as_errors_are_errors(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_command_line(shlex.split(line)) == 2
    assert "bootdqn: " in capsys.readouterr().err
    assert not any(tmp_path.iterdir())


def test_the_table_of_results_is_that_of_the_runs():
    solved = {}
    for row in read_rows("deep-sea-small"):
        config, episode = row["config"], row["summary"]["solved_at_strict"]
        solved.setdefault((config["strategy"], config["size"]), []).append(episode)

    def cell(found):
        good = [episode for episode in found if episode is not None]
        mean = f", {sum(good) / len(good):.0f}" if len(good) == len(found) else ""
        return f"{len(good)} of {len(found)}{mean}"

    stated = {plain(strategy): cells for strategy, *cells in rows(sections(INDEX)["What they did on DeepSea"])}
    assert set(stated) == {strategy for strategy, _ in solved}
    for strategy, cells in stated.items():
        assert cells == [cell(solved[strategy, size]) for size in (5, 10, 15, 20)]


@st.composite
def distinct_q(draw, num_heads, num_actions):
    """Q-values (K, A) that are whole numbers, so that sums are exact, and differ within a head."""
    values = st.lists(st.integers(-50, 50), min_size=num_actions, max_size=num_actions, unique=True)
    return np.array([draw(values) for _ in range(num_heads)], float)


@given(st.integers(1, 7).flatmap(lambda num_heads: distinct_q(num_heads, 2)))
def test_with_two_actions_six_rules_are_two(q):
    assert len({int(vote(q, rule)) for rule in ("plurality", "borda", "approval", "copeland")}) == 1
    assert vote(q, "gap") == vote(q, "mean")


@given(distinct_q(1, 4))
def test_with_one_head_every_strategy_that_does_not_sample_is_greedy(q):
    for strategy in STRATEGIES:
        if strategy is not Boltzmann:
            assert strategy().select(q, 0) == q[0].argmax()
    for rule in get_args(VoteRule):
        assert Vote(rule).select(q, 0) == q[0].argmax()


SMALL = "--num-heads 3 --learning-starts 8 --batch-size 8 --log-every 10 --quiet"
RUNS = {
    "deep-sea": "train deep-sea --size 4 --update-every 1 --max-episodes 40 --info-bonus 1 --eval-every-steps 50 "
    f"{SMALL}",
    "gym": f"train gym --env-id CartPole-v1 --total-steps 200 --eval-every-steps 100 --eval-episodes 1 {SMALL}",
    "failed": f"train deep-sea --size 4 --update-every 1 --learning-rate 1e34 {SMALL}",
}


EVERY_OPTION = (
    "--epsilon 0.5 --epsilon-end 0.1 --epsilon-steps 50 --prior-scale 3 --replay prioritized --beta-steps 50 "
    "--n-step 3 --target-every 2 --target-rate 0.5 --no-double-q --info-bonus 0.1 --info-temperature 0.5"
)


@pytest.mark.parametrize(
    "environment", ["deep-sea --size 4 --update-every 1 --max-episodes 20", "gym --env-id CartPole-v1 --total-steps 80"]
)
@pytest.mark.parametrize("strategy", [strategy.name for strategy in STRATEGIES])
def test_every_strategy_works_with_every_option(strategy, environment, tmp_path):
    line = f"train {environment} --strategy {strategy} {EVERY_OPTION} {SMALL} --run-dir {tmp_path / 'run'}"
    assert run_command_line(shlex.split(line)) == 0
    assert json.loads((tmp_path / "run/summary.json").read_text())["updates"] > 50


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Return the keys that small runs wrote, by the heading under which the page explains them."""
    root = tmp_path_factory.mktemp("runs")
    keys = {"File `summary.json`": set(), "File `timing.jsonl`": set(Clock(0).tick(1))}
    for name, line in RUNS.items():
        code = run_command_line([*shlex.split(line), "--run-dir", str(root / name)])
        assert code == (1 if name == "failed" else 0)
        keys["File `summary.json`"] |= set(json.loads((root / name / "summary.json").read_text()))
        for record in map(json.loads, (root / name / "timing.jsonl").read_text().splitlines()):
            keys["File `timing.jsonl`"] |= set(record)
        for record in map(json.loads, (root / name / "metrics.jsonl").read_text().splitlines()):
            keys.setdefault(f"Kind `{record['kind']}`", set()).update(record)
    return keys


def test_every_key_of_every_record_is_explained_and_no_other(written):
    tables = {heading: list(rows(text)) for heading, text in sections(METRICS).items()}
    explained = {heading: [plain(key) for key, _ in found] for heading, found in tables.items() if found}
    assert {heading: sorted(keys) for heading, keys in written.items()} == {
        heading: sorted(keys) for heading, keys in explained.items()
    }
