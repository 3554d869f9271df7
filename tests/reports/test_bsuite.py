"""bsuite's scores against bsuite's own analysis where it is installed, and by hand; its section of the report."""

import importlib.util
import json

import numpy as np
import pandas as pd
import pytest

from bootdqn.config.bsuite import EXPERIMENTS, BsuiteConfig
from bootdqn.config.settings import from_flat, to_flat
from bootdqn.config.train import resolve
from bootdqn.reports.bsuite import bsuite_conclusion, bsuite_runs, experiment_scores, scores_table, tag_scores
from bootdqn.reports.report import write_report
from bootdqn.reports.report_data import load_report_data
from bootdqn.training.stopping import BsuiteCounts, is_logged

needs_bsuite = pytest.mark.skipif(not importlib.util.find_spec("bsuite"), reason="bsuite is not installed")
ENDED = {"status": "finished", "seconds": 1.0, "steps": 10, "updates": 0, "evaluations": 0}


def write_run(root, counts, bsuite_id, strategy="greedy", seed=0):
    directory = root / strategy.replace(":", "-") / bsuite_id.replace("/", "-") / f"seed-{seed}"
    directory.mkdir(parents=True)
    episodes = min(counts.episodes, BsuiteConfig(bsuite_id).default_max_episodes)
    settings = {"bsuite_id": bsuite_id, "strategy": strategy, "seed": seed}
    if counts.solved_at is None:
        settings["max_episodes"] = episodes
    config = resolve(from_flat({"environment": "bsuite"} | settings))
    (directory / "config.json").write_text(json.dumps(to_flat(config)))
    (directory / "summary.json").write_text(json.dumps(ENDED | vars(counts)))


def played(experiment, returns=(), bad=()):
    counts = BsuiteCounts(experiment)
    for one in returns:
        counts.add_episode(float(one), bad=False)
    for one in bad:
        counts.add_episode(0.0, bad=bool(one))
    return counts


def swing_up_returns(rng, level):
    returns = np.linspace(-20.0, level, 1000) + rng.normal(0, 5, 1000)
    return returns if level > 150 else np.minimum(returns, 99.0)


def write_experiments(root):
    """Write one agent's runs in every setting, and return what bsuite would have logged of each, by experiment."""
    rng = np.random.default_rng(1)
    logs = {experiment: [] for experiment in EXPERIMENTS}
    for experiment, found in EXPERIMENTS.items():
        for index, settings in enumerate(found.settings):
            returns, bad = np.zeros(found.episodes), np.zeros(found.episodes, bool)
            if experiment == "cartpole_swingup":
                returns = swing_up_returns(rng, rng.choice([-30.0, 60.0, 300.0, 800.0]))
                counts = played(experiment, returns)
            else:
                bad = rng.random(found.episodes) < np.linspace(1.0, rng.uniform(0.4, 1.0), found.episodes)
                counts = played(experiment, bad=bad)
            bsuite_id = f"{experiment}/{index}"
            write_run(root, counts, bsuite_id)
            episodes = np.arange(1, found.episodes + 1)
            log = pd.DataFrame(
                {
                    "episode": episodes,
                    "total_return": np.cumsum(returns),
                    "best_episode": np.maximum(np.maximum.accumulate(returns), 0),
                    "total_bad_episodes": np.cumsum(bad),
                    "bsuite_id": bsuite_id,
                    "bsuite_env": experiment,
                    **settings,
                }
            )
            logs[experiment].append(log[[is_logged(one) for one in episodes]])
    return logs


@needs_bsuite
@pytest.mark.filterwarnings("ignore::pandas.errors.Pandas4Warning")
def test_the_scores_are_those_of_bsuites_analysis(tmp_path, monkeypatch):
    analysis = pytest.importorskip("bsuite.experiments.summary_analysis")
    # pandas 2 removed what bsuite 0.3.6 calls
    monkeypatch.setattr(pd.Series, "append", lambda one, other: pd.concat([one, other]), raising=False)
    logs = write_experiments(tmp_path)
    theirs = analysis.bsuite_score(pd.concat([pd.concat(tables) for tables in logs.values()], ignore_index=True))
    theirs = theirs.set_index("bsuite_env").score.astype(float)
    scores = experiment_scores(bsuite_runs(load_report_data(tmp_path)))
    assert scores.set_index("experiment").score.to_dict() == pytest.approx(theirs.to_dict())
    assert all(0.1 < score < 0.9 for score in scores.score)
    by_tag = analysis.ave_score_by_tag(
        theirs.reset_index().assign(tags=[str(analysis.BSUITE_INFO[name].tags) for name in theirs.index]), []
    )
    (mean,) = tag_scores(scores).values()
    assert mean == pytest.approx(by_tag.set_index("tag").score["exploration"])


def test_swing_up_scores_half_for_the_mean_return_and_half_for_one_good_episode(tmp_path):
    for index, returns in enumerate(([350.0] * 1000, [99.0] * 1000, [-50.0] * 999 + [101.0], [1000.0] * 1000)):
        write_run(tmp_path, played("cartpole_swingup", returns), f"cartpole_swingup/{index}")
    runs = bsuite_runs(load_report_data(tmp_path)).sort_values("index")
    assert list(runs.score) == pytest.approx([(0.5 + 1) / 2, 99 / 700 / 2, 0.5, 1.0])


def test_deep_sea_counts_where_it_is_solved_sooner_than_by_random_play(tmp_path):
    bad = np.ones(1400, bool)
    bad[900:1300] = False  # solved by episode 1200, later than 2^10 + 100, sooner than 2^12
    for bsuite_id in ("deep_sea/0", "deep_sea/1"):
        write_run(tmp_path, played("deep_sea", bad=bad), bsuite_id)
    write_run(tmp_path, played("deep_sea", bad=np.ones(10_000)), "deep_sea/2")
    runs = bsuite_runs(load_report_data(tmp_path)).sort_values("index")
    assert list(runs.score) == [0.0, 1.0, 0.0]


def test_seeds_of_a_setting_are_averaged_and_missing_and_short_runs_are_named(tmp_path):
    write_run(tmp_path, played("deep_sea", bad=[0]), "deep_sea/0", seed=0)
    write_run(tmp_path, played("deep_sea", bad=np.ones(10_000)), "deep_sea/0", seed=1)
    write_run(tmp_path, played("deep_sea", bad=[0]), "deep_sea/1", seed=0)
    write_run(tmp_path, played("cartpole_swingup", [-1.0] * 7), "cartpole_swingup/3")
    table = scores_table(experiment_scores(bsuite_runs(load_report_data(tmp_path))))
    (row,) = table.rows
    assert row == ("BootDQN", "0.750 (2 of 21)", "", "0.000 (1 of 20, 1 short)", "", "1")


def test_the_report_shows_the_scores_the_radar_and_the_answer(tmp_path):
    for strategy, solved in (("greedy", 1), ("evoi:reduce=sum", 0)):
        for experiment in EXPERIMENTS:
            bad = [solved] * 120 if "deep_sea" in experiment else []
            counts = played(experiment, [] if bad else [-2.0] * 10, bad)
            write_run(tmp_path, counts, f"{experiment}/0", strategy)
    page = write_report(tmp_path, tmp_path / "report.html").read_text()
    assert "bsuite&#x27;s exploration experiments" in page
    assert "the highest mean score is 0.667: BootDQN-EVOI." in page.replace("&#x27;", "'")
    names = {path.name for path in (tmp_path / "report_files/figures").iterdir()}
    assert {"bsuite-radar.png", "bsuite-settings.png"} <= names
    with (tmp_path / "report_files/tables/bsuite.csv").open() as file:
        rows = pd.read_csv(file)
    assert list(rows.algorithm) == ["BootDQN", "BootDQN-EVOI"]
    assert list(rows["exploration (mean)"]) == ["0.000 (in part)", "0.667 (in part)"]


def test_without_all_three_experiments_there_is_no_mean(tmp_path):
    write_run(tmp_path, played("deep_sea", bad=[0]), "deep_sea/0")
    scores = experiment_scores(bsuite_runs(load_report_data(tmp_path)))
    assert bsuite_conclusion(scores).endswith("no algorithm has runs in all three.")
