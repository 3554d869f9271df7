"""Runs of `train gym` in a report: a table and figures of their own."""

import csv
import json

import pytest

from bootdqn.config.settings import from_flat
from bootdqn.reports.conclusions import gym_conclusion
from bootdqn.reports.gymnasium import by_task, evaluation_curve, gym_runs, learning_curves, returns_table
from bootdqn.reports.report import write_report
from bootdqn.reports.report_data import load_report_data
from bootdqn.reports.style import UNFINISHED_CAPTION
from bootdqn.training.run import train_run
from reference.run_directories import write_gym

LAKE = {"env_id": "FrozenLake-v1", "env_options": ["map_name=8x8"]}


def read(root):
    """Return the runs that count, and why others do not."""
    study = load_report_data(root)
    runs = gym_runs(study)
    return runs[runs.counted], {run.run: run.problem for run in study.runs.itertuples() if run.problem}


def curves(root, max_variants=8):
    """Return the figure and the caption of the only environment."""
    study = load_report_data(root)
    (runs,) = by_task(gym_runs(study)).values()
    return learning_curves(runs, study.returns, max_variants)


def rows(root):
    found = returns_table(read(root)[0])
    return [dict(zip(found.columns, row, strict=True)) for row in found.rows]


def test_each_environment_budget_and_algorithm_has_a_row_with_the_means_over_its_seeds(tmp_path):
    write_gym(tmp_path / "a0", seed=0, found=(10.0, 100.0, 200.0))
    write_gym(tmp_path / "a1", seed=1, found=(20.0, 300.0, 500.0))
    write_gym(tmp_path / "prior", found=(7.0, 8.0, 9.0), prior_scale=3.0)
    write_gym(tmp_path / "longer", found=(1.0, 2.0, 3.0), total_steps=20_000)
    write_gym(tmp_path / "greedy", "greedy", found=(-0.005, None, None), **LAKE)
    returns = ("last evaluation", "best evaluation", "training")
    found = {tuple(row[name] for name in ("environment", "steps", "algorithm", "seeds")): row for row in rows(tmp_path)}
    assert {key: tuple(row[name] for name in returns) for key, row in found.items()} == {
        ("CartPole-v1", "1,000", "BootDQN-Gain", "2"): ("200", "350", "15"),
        ("CartPole-v1", "1,000", "BootDQN-Gain + prior 3", "1"): ("8", "9", "7"),
        ("CartPole-v1", "20,000", "BootDQN-Gain", "1"): ("2", "3", "1"),
        ("FrozenLake-v1 map_name=8x8", "1,000", "BootDQN", "1"): ("", "", "-0.005"),
    }


def test_a_mean_that_lacks_a_seed_is_none(tmp_path):
    write_gym(tmp_path / "a0", seed=0, found=(10.0, None, None))
    write_gym(tmp_path / "a1", seed=1, found=(20.0, 300.0, 500.0))
    (row,) = rows(tmp_path)
    assert (row["last evaluation"], row["best evaluation"], row["training"]) == ("", "", "15")


@pytest.mark.parametrize(
    ("file", "values"),
    [
        ("config", {"total_steps": "many"}),
        ("config", {"seed": None}),
        ("config", {"env_options": 3}),
        ("summary", {"recent_return": "high"}),
        ("summary", {"max_evaluation": float("nan")}),
    ],
)
def test_a_damaged_run_is_listed(tmp_path, file, values):
    write_gym(tmp_path / "whole", seed=1)
    write_gym(tmp_path / "run", seed=0)
    path = tmp_path / f"run/{file}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
    found, problems = read(tmp_path)
    assert list(found.run) == ["whole"]
    assert {run: problem.partition(":")[0] for run, problem in problems.items()} == {"run": "unreadable"}


def test_runs_that_do_not_count_are_listed(tmp_path):
    write_gym(tmp_path / "first")
    write_gym(tmp_path / "second")
    write_gym(tmp_path / "stopped", seed=1, status="interrupted")
    found, problems = read(tmp_path)
    assert list(found.run) == ["first"]
    assert problems == {
        "second": "the same algorithm and seed as first, which is counted",
        "stopped": "interrupted",
    }


def test_a_report_on_gymnasium_alone_has_its_table_and_no_claims(tmp_path):
    small = {"environment": "gym", "env_id": "FrozenLake-v1", "total_steps": 300, "num_heads": 2, "hidden_sizes": [8]}
    summary = train_run(from_flat(small | {"eval_every_steps": 100, "eval_episodes": 2}), tmp_path / "runs/one").summary
    page = write_report(tmp_path / "runs", tmp_path / "out.html").read_text()
    assert "1 of 1 run in" in page
    assert "On FrozenLake-v1 (300 steps) BootDQN-EVOI (mean), K = 2 has a last evaluation of" in page
    assert "there is nothing to compare it with" in page
    assert {path.stem for path in (tmp_path / "out_files/figures").iterdir()} == {"gym-frozenlake-v1"}
    assert "Claims" not in page
    assert "Not counted" not in page
    tables = tmp_path / "out_files/tables"
    assert {path.name for path in tables.iterdir()} == {"gym.csv", "gym.tex"}
    with (tables / "gym.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["environment"], row["steps"], row["seeds"]) == ("FrozenLake-v1", "300", "1")
    assert float(row["training"]) == pytest.approx(summary["recent_return"], rel=1e-3)
    assert float(row["best evaluation"]) == pytest.approx(summary["max_evaluation"], rel=1e-3)


def test_a_row_has_the_interval_from_three_seeds_on_and_the_value_of_each(tmp_path):
    for seed, value in enumerate((100.0, 200.5, 300.0)):
        write_gym(tmp_path / f"gain/{seed}", seed=2 - seed, found=(1.0, value, 500.0))
        write_gym(tmp_path / f"ucb/{seed}", "ucb", seed, found=(value, None, None))
        if seed:
            write_gym(tmp_path / f"greedy/{seed}", "greedy", seed, found=(1.0, value, 500.0))
    cells = {row["algorithm"]: (row["95 % interval"], row["each seed"]) for row in rows(tmp_path)}
    assert cells == {
        "BootDQN": ("", "200.5, 300"),
        "BootDQN-UCB": ("100 to 300", "100, 200.5, 300"),
        "BootDQN-Gain": ("100 to 300", "300, 200.5, 100"),
    }


def test_curves_are_of_the_evaluations_where_every_run_has_some(tmp_path):
    for seed in range(3):
        evaluations = [(100 * number, seed + number) for number in range(1, 6)]
        write_gym(tmp_path / str(seed), seed=seed, evaluations=evaluations, episodes=[(50, 1.0)])
    returns = load_report_data(tmp_path).returns
    evaluations = returns[returns.kind == "evaluation"]
    steps, values = evaluation_curve([run for _, run in evaluations.groupby("run")])
    assert steps.tolist() == [100, 200, 300, 400, 500]
    assert values.tolist() == [[1, 2, 3, 4, 5], [2, 3, 4, 5, 6], [3, 4, 5, 6, 7]]
    figure, caption = curves(tmp_path)
    (axes,) = figure.axes
    assert axes.get_ylabel() == "evaluation return"
    assert axes.lines[0].get_ydata().tolist() == [2, 3, 4, 5, 6]
    assert len(axes.collections) == 1, "the interval of three seeds"
    assert caption.startswith("Evaluation return, by the vote of the heads, in the course of 1,000 steps.")


def test_curves_are_of_the_episodes_of_training_where_one_run_has_no_evaluations(tmp_path):
    write_gym(tmp_path / "a", seed=0, episodes=[(100, 1.0), (300, 3.0)], evaluations=[(500, 9.0), (1000, 9.0)])
    write_gym(tmp_path / "b", seed=1, episodes=[(200, 5.0), (500, 7.0)])
    write_gym(tmp_path / "c", seed=2)
    figure, caption = curves(tmp_path)
    (axes,) = figure.axes
    assert axes.get_ylabel() == "return of training episodes"
    steps, mean = axes.lines[0].get_data()
    assert (steps[0], steps[-1]) == (200, 500)
    assert [mean[steps < 300].max(), mean[(steps >= 300) & (steps < 500)].max(), mean[-1]] == [3, 4, 5]
    assert not axes.collections, "two seeds have no interval"
    assert caption.endswith("Of 3 runs, 2 have their metrics here.")


def test_of_many_algorithms_those_with_the_highest_results_are_plotted(tmp_path):
    for number, strategy in enumerate(("greedy", "ucb", "gain")):
        episodes = [(100, 1.0), (1000, 2.0)]
        write_gym(tmp_path / strategy, strategy, found=(1.0, float(number), 9.0), episodes=episodes)
    figure, caption = curves(tmp_path, max_variants=2)
    assert [line.get_label() for line in figure.axes[0].lines] == ["BootDQN-UCB", "BootDQN-Gain"]
    assert caption.endswith("Plotted are 2 of 3 algorithms, those that came out highest.")


def test_an_unfinished_run_is_plotted_by_itself_up_to_its_last_record(tmp_path):
    evaluated = [(250 * number, float(number)) for number in range(1, 5)]
    write_gym(tmp_path / "done", seed=0, evaluations=evaluated)
    write_gym(tmp_path / "stopped", seed=1, evaluations=[(250, 9.0)], episodes=[(10, 1.0)], status="interrupted")
    write_gym(tmp_path / "killed", "greedy", evaluations=evaluated[:2])
    (tmp_path / "killed/summary.json").unlink()
    write_gym(tmp_path / "begun", "ucb", status="interrupted")
    figure, caption = curves(tmp_path)
    lines = [(line.get_xdata().tolist(), line.get_ydata().tolist()) for line in figure.axes[0].lines]
    assert lines == [
        ([250, 500], [1, 2]),
        ([500], [2]),
        ([250, 500, 750, 1000], [1, 2, 3, 4]),
        ([250], [9]),
        ([250], [9]),
    ]
    assert [line.get_markerfacecolor() == "white" for line in figure.axes[0].lines] == [False, True, False, False, True]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["BootDQN", "BootDQN-Gain"]
    assert caption.endswith(f"from three on. {UNFINISHED_CAPTION}")


def test_a_report_on_a_run_under_way_has_its_curve_and_no_table(tmp_path):
    write_gym(tmp_path / "run", episodes=[(10, 1.0), (30, 2.0)], status="interrupted")
    write_report(tmp_path, tmp_path / "report.html")
    assert (tmp_path / "report_files/figures/gym-cartpole-v1.png").exists()
    assert not (tmp_path / "report_files/tables/gym.csv").exists()


def test_an_algorithm_without_a_line_is_named(tmp_path):
    write_gym(tmp_path / "a", episodes=[(10, 1.0), (30, 2.0)])
    write_gym(tmp_path / "b", "ucb")
    _, caption = curves(tmp_path)
    assert caption.endswith("Without a line, for lack of metrics: BootDQN-UCB.")


def test_runs_without_records_have_no_figure(tmp_path):
    write_gym(tmp_path / "a")
    assert curves(tmp_path) is None


def test_each_environment_has_a_figure_and_shared_settings_are_listed_once(tmp_path):
    curve = {"episodes": [(500, 1.0), (1000, 2.0)], "batch_size": 8}
    for strategy in ("gain", "greedy"):
        write_gym(tmp_path / f"runs/{strategy}", strategy, **curve)
        write_gym(tmp_path / f"runs/longer-{strategy}", strategy, total_steps=2000, **curve)
        write_gym(tmp_path / f"runs/lake-{strategy}", strategy, **LAKE, **curve)
    page = write_report(tmp_path / "runs", tmp_path / "out.html").read_text()
    figures = {path.name for path in (tmp_path / "out_files/figures").iterdir()}
    names = ("gym-cartpole-v1", "gym-cartpole-v1-2", "gym-frozenlake-v1-map-name-8x8")
    assert figures == {f"{name}.{form}" for name in names for form in ("png", "svg")}
    assert "All of these runs: batch_size=8." in page
    assert "BootDQN-Gain, batch_size=8" not in page


def answer_on(root, **values):
    for strategy, returns in values.items():
        for seed, value in enumerate(returns):
            write_gym(root / f"{strategy}/{seed}", strategy, seed, found=(value / 2, value, value))
    return gym_conclusion(read(root)[0])


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (
            {"gain": (9, 8, 10, 7), "greedy": (1, 2, 3, 4), "ucb": (1, 1, 1, 1)},
            "BootDQN-Gain has the highest last evaluation: 8.5 on average over 4 seeds. Next: BootDQN, 2.5 with "
            "4 seeds; a rank test finds a difference (p = 0.029).",
        ),
        (
            {"gain": (9, 8, 10, 7), "greedy": (8, 9, 3, 4)},
            "BootDQN-Gain has the highest last evaluation: 8.5 on average over 4 seeds. Next: BootDQN, 6 with "
            "4 seeds; a rank test finds no difference (p = 0.343).",
        ),
        (
            {"gain": (9, 8, 10), "greedy": (1, 2, 3)},
            "BootDQN-Gain has the highest last evaluation: 9 on average over 3 seeds. Next: BootDQN, 2 with 3 seeds; "
            "3 against 3 seeds are too few for a rank test.",
        ),
        (
            {"gain": (1, 1, 1, 1, 1, 200), "greedy": (2, 2, 2, 2, 2, 2)},
            "BootDQN-Gain has the highest last evaluation: 34.17 on average over 6 seeds. Next: BootDQN, 2 with "
            "6 seeds; the rank test favours the latter (p = 0.015).",
        ),
        (
            {"gain": (500, 500), "greedy": (500, 500), "ucb": (400,)},
            "2 of 3 algorithms share the highest last evaluation, 500 on average over 2 seeds: BootDQN, BootDQN-Gain.",
        ),
        (
            {"gain": (3, 4)},
            "BootDQN-Gain has a last evaluation of 3.5 on average over 2 seeds; there is nothing to compare it with.",
        ),
    ],
)
def test_the_answer_names_the_highest_and_whether_a_rank_test_separates_it_from_the_next(tmp_path, values, expected):
    assert answer_on(tmp_path, **values) == f"On CartPole-v1 (1,000 steps) {expected}"


def test_the_answer_is_by_training_where_a_run_was_never_evaluated_and_counts_what_it_leaves_out(tmp_path):
    write_gym(tmp_path / "a", found=(1.0, None, None))
    write_gym(tmp_path / "b", "greedy", found=(2.0, 90.0, 90.0))
    write_gym(tmp_path / "c", env_id="Empty-v0", found=(None, None, None))
    for number in range(3):
        write_gym(tmp_path / f"further{number}", env_id=f"Further-v{number}")
    text = gym_conclusion(read(tmp_path)[0])
    assert text.startswith(
        "On CartPole-v1 (1,000 steps) BootDQN has the highest return of the last episodes of training: 2 with 1 seed"
    )
    assert "On Empty-v0 (1,000 steps) there is nothing to compare: not every run has a return. On Further-v0" in text
    assert text.endswith("The table has 2 further environments.")
