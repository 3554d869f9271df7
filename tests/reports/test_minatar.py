"""The report on MinAtar, of the smoke size of both sweeps: the analogues of what it has for Atari."""

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import trim_mean

import bootdqn
from bootdqn.config.settings import to_flat
from bootdqn.config.variants import Variant
from bootdqn.envs.minatar import palette
from bootdqn.inspector.recording import Recorder
from bootdqn.reports.atari import evaluations_of, normalised_scores, normalised_strata
from bootdqn.reports.report import write_report
from bootdqn.reports.report_data import load_report_data
from bootdqn.reports.suites import MINATAR
from bootdqn.sweeps.sweep_file import load_sweep
from reproduction.claims import analogues_table
from reproduction.evidence import MINATAR as PLAN
from reproduction.evidence import Evidence
from reproduction.minatar_random import SCORES, random_play

pytest.importorskip("minatar")
STRATEGIES = ("greedy", "ucb", "gain", "evoi")
NUMBERS_OF_HEADS = {("num_heads", number) for number in PLAN.heads if number != 10}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return the directory of all runs of both sweeps, trained."""
    root = tmp_path_factory.mktemp("minatar")
    for sweep in ("paper-minatar-smoke", "minatar-heads-smoke"):
        for run in load_sweep(sweep).runs():
            assert bootdqn.train(to_flat(run.config), root / sweep / run.name)["status"] == "finished"
    return root


def best_of(path):
    records = map(json.loads, (path / "metrics.jsonl").read_text().splitlines())
    return max(record["mean_return"] for record in records if record["kind"] == "evaluation")


def test_scores_are_normalised_by_random_play_and_the_best_run(runs):
    study = runs / "paper-minatar-smoke"
    evaluations = evaluations_of(load_report_data(study), MINATAR)
    assert evaluations.run.nunique() == 8
    best = {str(path.parent.relative_to(study)): best_of(path.parent) for path in study.rglob("config.json")}
    highest = {game: max(score for run, score in best.items() if game in run) for game in ("breakout", "seaquest")}
    expected = {
        run: 100 * (score - MINATAR.random[game]) / (highest[game] - MINATAR.random[game])
        for run, score in best.items()
        for game in highest
        if game in run and highest[game] > MINATAR.random[game]
    }
    found = normalised_strata(evaluations, MINATAR)
    assert sorted(value for games in found.values() for values in games.values() for value in values) == pytest.approx(
        sorted(expected.values())
    )
    table = normalised_scores(evaluations, MINATAR)
    for row, (variant, games) in zip(table.rows, found.items(), strict=True):
        values = [value for one in games.values() for value in one]
        assert float(row[table.columns.index("mean")]) == pytest.approx(np.mean(values), abs=0.005)
        assert float(row[table.columns.index("interquartile mean")]) == pytest.approx(
            trim_mean(values, 0.25), abs=0.005
        )
        assert variant.strategy in ("greedy", "ucb", "gain", "evoi")


def test_the_page_has_what_it_has_for_atari_labelled_as_an_analogue(runs, tmp_path):
    shutil.copytree(runs, tmp_path / "runs")
    shutil.copytree(runs / "paper-minatar-smoke", tmp_path / "runs/another-seed")
    for path in (tmp_path / "runs/another-seed").rglob("config.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"seed": 1}))
    page = write_report(tmp_path / "runs", tmp_path / "report.html").read_text()
    (section,) = re.findall(r"<h2[^>]*>MinAtar</h2>.*?(?=<h2)", page, re.DOTALL)
    assert "analogues of its tables and figures on Atari" in section
    assert "On MinAtar" in page
    names = {path.stem for path in (tmp_path / "report_files").rglob("*")}
    tables = {"maximal-scores", "normalised-scores", "improvement", "vote-diversity", "runtime"}
    figures = {"scores", "profiles", "vote-count-variance", "vote-entropy", "heads"}
    assert {f"minatar-{name}" for name in tables | figures} <= names
    assert "human" not in section
    assert "frames" not in re.sub("<svg.*?</svg>", "", section, flags=re.DOTALL)
    assert "BootDQN-EVOI" in section
    assert "EVOI (mean)" not in section, "EVOI is the mean over heads here"


def test_the_analogues_of_the_papers_claims_are_judged_by_real_runs(runs):
    """As if the settings of the small runs were the default; with one seed the means decide, and no interval does."""
    found = [
        evaluations_of(load_report_data(runs / name), MINATAR)
        for name in ("paper-minatar-smoke", "minatar-heads-smoke")
    ]
    real = analogues_table(Evidence.of_plan(PLAN, *found))
    assert {row[3] for row in real.rows} == {f"not judged: 0 of {number} runs" for number in (20, 25, 50, 75, 100)}
    games, heads = (
        table.assign(variant=[Variant(one.strategy, tuple(kept(one))) for one in table.variant])
        for table, kept in zip(found, (lambda _: (), lambda one: set(one.settings) & NUMBERS_OF_HEADS), strict=True)
    )
    plan = replace(PLAN, games=("breakout", "seaquest"), seeds=1, budget=600, heads_budget=600)
    reasons = [row[3] for row in analogues_table(Evidence.of_plan(plan, games, heads)).rows]
    best = {
        game: {name: best_of(runs / f"paper-minatar-smoke/{game}/{name}/seed-0") for name in STRATEGIES}
        for game in plan.games
    }
    ahead = sum(scores.pop("evoi") > max(scores.values()) for scores in best.values())
    assert reasons.count(f"EVOI is best in {ahead} of 2 games") == 1
    assert reasons.count("not judged: an interval needs 3 seeds that differ") == 8


def test_the_inspector_shows_the_game_in_its_colours_and_names_its_actions(runs):
    recorder = Recorder(runs / "paper-minatar-smoke/breakout/evoi/seed-0")
    steps = recorder.record(episodes=1, max_steps=5, seed=0, head=0).steps
    assert steps[0].names == ("NOOP", "LEFT", "RIGHT")
    colours = {tuple(colour) for step in steps for colour in step.frame.reshape(-1, 3).tolist()}
    assert colours == {tuple(colour) for colour in palette(4).tolist()}


def test_random_play_is_what_was_measured():
    measured = json.loads(SCORES.read_text())
    assert {game: round(found["mean_return"], 2) for game, found in measured.items()} == MINATAR.random
    again = random_play("breakout", episodes=200, seed=1)
    error = np.hypot(again["error"], measured["breakout"]["error"])
    assert abs(again["mean_return"] - measured["breakout"]["mean_return"]) < 5 * error
