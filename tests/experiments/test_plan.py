"""Experiments as data: the paper's, a user's own, and what is wrong with them."""

import pytest

from bootdqn.common.errors import UsageError
from bootdqn.experiments.cost import longest_first, longest_steps
from bootdqn.experiments.plan import load_sweep, sweep_names

OWN = """
description = "mine"
[base]
environment = "deep-sea"
max_episodes = 7
[axes]
size = [5, 6]
seed = [0, 1]
"""


def names(runs):
    return [str(run.name) for run in runs]


def test_the_papers_experiments_have_as_many_runs_as_the_paper():
    assert len(load_sweep("paper-atari").runs()) == 4 * 6 * 3
    assert len(load_sweep("paper-deepsea").runs()) == 6 * 6 * 15
    diversity = load_sweep("paper-diversity").runs()
    assert {run.config.network.num_heads for run in diversity} == {2, 6, 10, 12}
    assert {(run.config.env.game, run.config.env.total_frames) for run in diversity} == {("Hero", 100_000_000)}


def test_the_papers_atari_runs_have_the_papers_settings():
    for run in load_sweep("paper-atari").runs():
        assert run.config.env.total_frames == 200_000_000
        assert run.config.network.num_heads == 10
        assert run.config.replay.replay_capacity == 1_000_000


@pytest.mark.parametrize("name", [name for name in sweep_names() if name.endswith("-smoke")])
def test_every_experiment_has_a_smoke_size_of_the_same_algorithms(name):
    small, large = load_sweep(name).runs(), load_sweep(name.removesuffix("-smoke")).runs()
    assert 0 < len(small) < len(large)
    assert {run.config.actor.strategy for run in small} == {run.config.actor.strategy for run in large}
    assert sum(longest_steps(run.config) for run in small) < 20_000


def test_the_seed_is_the_outermost_axis_wherever_it_is_written(tmp_path):
    (tmp_path / "own.toml").write_text(OWN)
    runs = load_sweep(str(tmp_path / "own.toml")).runs()
    assert names(runs) == ["size-5/seed-0", "size-6/seed-0", "size-5/seed-1", "size-6/seed-1"]
    assert [run.config.env.mapping_seed for run in runs] == [0, 0, 1, 1]


def test_yaml_says_the_same_as_toml(tmp_path):
    (tmp_path / "own.toml").write_text(OWN)
    (tmp_path / "own.yaml").write_text(
        "description: mine\nbase: {environment: deep-sea, max_episodes: 7}\naxes: {size: [5, 6], seed: [0, 1]}\n"
    )
    assert load_sweep(str(tmp_path / "own.toml")) == load_sweep(str(tmp_path / "own.yaml"))


def test_overrides_change_the_base_replace_an_axis_and_add_one():
    sweep = load_sweep("paper-deepsea").with_overrides(
        ["max_episodes=50", "seed=[3]", "strategy=gain:scale=2", "size=[5]", "batch_size=[32, 64]", "hidden_sizes=[9]"]
    )
    assert names(sweep.runs()) == [
        "size-5/gain-scale-2.0/batch-size-32/seed-3",
        "size-5/gain-scale-2.0/batch-size-64/seed-3",
    ]
    assert {run.config.env.max_episodes for run in sweep.runs()} == {50}
    assert {run.config.network.hidden_sizes for run in sweep.runs()} == {(9,)}


def test_what_is_named_twice_is_run_once():
    sweep = load_sweep("paper-deepsea").with_overrides(["seed=[0]", "size=[5, 5]", 'strategy=["gain", "gain:scale=1"]'])
    assert len(sweep.runs()) == 1


def test_the_longest_runs_of_a_seed_come_first():
    runs = longest_first(load_sweep("paper-deepsea").with_overrides(["seed=[1, 0]", "strategy=gain"]).runs())
    assert names(runs)[:3] == ["size-30/gain/seed-0", "size-25/gain/seed-0", "size-20/gain/seed-0"]
    assert [run.config.run.seed for run in runs] == [0] * 6 + [1] * 6


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[base]\nenvironment = 'deep-sea'\nsise = 5", "unknown setting 'sise'; did you mean 'size'?"),
        ("[base]\nenvironment = 'deep-sea'\n[axis]\nsize = [5]", "unknown key 'axis'; did you mean 'axes'?"),
        ("[base]\nenvironment = 'deep-sea'\n[axes]\nsize = 5", "axis size must be a list of values, got 5"),
        ("[base]\nenvironment = 'deep-sea'\n[axes]\nsize = []", "axis size must be a list of values"),
        ("[base]\nenvironment = 'deep-sea'\nsize = 3\n[axes]\nsize = [5]", "size is in the base and an axis"),
        ("[base]\nenvironment = 'deep-see'", "environment must be one of"),
        ("[axes]\nsize = [5]", "expected tables [base] and [axes]"),
        ("[base", "own.toml"),
    ],
)
def test_a_mistake_in_a_file_is_named(tmp_path, content, message):
    (tmp_path / "own.toml").write_text(content)
    with pytest.raises(UsageError) as caught:
        load_sweep(str(tmp_path / "own.toml")).runs()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("max_episodes", "is not of the form key=value"),
        ("max_episode=3", "did you mean 'max_episodes'?"),
        ("size=ten", "size must be of type int, got 'ten'"),
        ("size=[]", "must be a list of values"),
    ],
)
def test_a_mistake_in_an_override_is_named(override, message):
    with pytest.raises(UsageError) as caught:
        load_sweep("paper-deepsea").with_overrides([override]).runs()
    assert message in str(caught.value)


def test_a_file_that_is_not_there_and_a_name_that_is_none():
    with pytest.raises(UsageError, match=r"nowhere\.toml: No such file"):
        load_sweep("nowhere.toml")
    with pytest.raises(UsageError, match="did you mean 'paper-atari'"):
        load_sweep("paper-atary")
    with pytest.raises(UsageError, match="choose from paper-atari, paper-atari-smoke"):
        load_sweep("zzz")
