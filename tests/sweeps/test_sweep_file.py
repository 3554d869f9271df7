"""Sweep definitions: the paper's, a user's, and their errors."""

import os
from dataclasses import asdict
from pathlib import PurePosixPath

import pytest

from bootdqn.common.errors import UsageError
from bootdqn.config.bsuite import BSUITE_IDS
from bootdqn.config.defaults import DEEP_SEA
from bootdqn.config.settings import default_settings, from_flat, to_flat
from bootdqn.sweeps.cost import in_scheduling_order, memory_needed
from bootdqn.sweeps.sweep_file import PlannedRun, load_sweep, sweep_names
from bootdqn.training.loop import make_components

OWN = """
description = "mine"
[base]
environment = "deep-sea"
max_episodes = 7
[axes]
size = [5, 6]
seed = [0, 1]
"""

LAKE = "environment = 'gym'\nenv_id = 'FrozenLake-v1'"


def names(runs):
    return [str(run.name) for run in runs]


def test_the_papers_sweeps_have_as_many_runs_as_the_paper():
    assert len(load_sweep("paper-atari").runs()) == 4 * 6 * 3
    assert len(load_sweep("paper-deepsea").runs()) == 6 * 6 * 15
    diversity = load_sweep("paper-diversity").runs()
    assert {run.config.network.num_heads for run in diversity} == {2, 6, 10, 12}
    assert {(run.config.env.game, run.config.env.total_frames) for run in diversity} == {("Hero", 100_000_000)}


def test_bsuites_sweep_has_every_setting_of_its_tag_once_with_bsuites_episodes():
    runs = [run.config.env for run in load_sweep("bsuite-exploration").runs() if run.config.actor.strategy == "greedy"]
    assert [env.bsuite_id for env in runs] == list(BSUITE_IDS)
    assert all(env.max_episodes == env.default_max_episodes for env in runs)


def test_the_minatar_study_has_all_seeds_of_a_game_and_algorithm_and_the_presets_settings():
    runs = load_sweep("paper-minatar").runs()
    assert len(runs) == 4 * 5 * 5
    assert [run.config.run.seed for run in runs] == [seed for seed in range(5) for _ in range(20)], (
        "seeds are outermost"
    )
    changed = ("game", "seed", "strategy")
    settings = [{name: one for name, one in to_flat(run.config).items() if name not in changed} for run in runs]
    assert all(one == settings[0] for one in settings)
    assert settings[0] == {name: one for name, one in default_settings()["minatar"].items() if name not in changed}
    heads = load_sweep("minatar-heads").runs()
    assert {(run.config.network.num_heads, run.config.actor.strategy) for run in heads} == {
        (k, "evoi") for k in (2, 6, 10, 12)
    }


def test_the_papers_sweeps_describe_their_part_of_the_paper_and_the_differences():
    assert load_sweep("paper-atari").description.startswith("The paper's Table 1: ")
    for name in ("paper-deepsea", "paper-deepsea-every-step"):
        study = load_sweep(name)
        (cap,) = {run.config.env.max_episodes for run in study.runs()}
        assert f"{cap:,} episodes" in study.description


def test_the_papers_deep_sea_study_has_one_update_an_episode_and_the_other_reading_one_a_step():
    study, every_step = load_sweep("paper-deepsea").runs(), load_sweep("paper-deepsea-every-step").runs()
    assert all(run.config.learner.update_every == run.config.env.size for run in study)
    assert all(run.config.learner.update_every == 1 for run in every_step)
    assert all(run.config.env.max_episodes == DEEP_SEA.env.max_episodes == 100_000 for run in study)
    assert [run.name for run in study] == [run.name for run in every_step]


def test_the_papers_atari_runs_have_the_papers_settings():
    runs = load_sweep("paper-atari").runs()
    assert {run.config.actor.strategy for run in runs} == {"greedy", "ucb", "gain", "evoi"}
    assert {run.config.env.game for run in runs} == {"Gravitar", "Solaris", "PrivateEye", "Venture", "Alien", "Hero"}
    for run in runs:
        assert run.config.env.total_frames == 200_000_000
        assert run.config.network.num_heads == 10
        assert run.config.replay.replay_capacity == 1_000_000


@pytest.mark.parametrize("name", [name for name in sweep_names() if name.endswith("-smoke")])
def test_every_sweep_has_a_smoke_size_of_the_same_algorithms(name):
    small, large = load_sweep(name).runs(), load_sweep(name.removesuffix("-smoke")).runs()
    assert 0 < len(small) < len(large)
    assert {run.config.actor.strategy for run in small} == {run.config.actor.strategy for run in large}
    assert sum(run.config.env.max_training_steps for run in small) < 20_000


@pytest.mark.parametrize("name", [name for name in sweep_names() if name.endswith("-smoke")])
def test_a_smoke_size_is_described_as_what_it_is(name):
    small, large = load_sweep(name), load_sweep(name.removesuffix("-smoke"))
    runs = small.runs()
    assert small.description != large.description
    assert small.description.endswith(f" ({len(runs)} runs).")
    seeds = {1: "one seed", 2: "two seeds"}[len({run.config.run.seed for run in runs})]
    env = runs[0].config.env
    budgets = {"atari": "{total_frames:,} frames", "minatar": "{total_steps:,} steps"}
    budget = budgets.get(env.kind, "at most {max_episodes:,} episodes").format(**asdict(env))
    assert all(text in small.description for text in (seeds, budget, *{run.config.env.label for run in runs}))


def test_the_seed_is_the_outermost_axis_wherever_it_is_written(tmp_path):
    (tmp_path / "own.toml").write_text(OWN)
    runs = load_sweep(str(tmp_path / "own.toml")).runs()
    assert names(runs) == ["size-5/seed-0", "size-6/seed-0", "size-5/seed-1", "size-6/seed-1"]
    assert [run.config.env.mapping_seed for run in runs] == [0, 0, 1, 1]


def variants(tmp_path, *lines, seeds=(0, 1)):
    (tmp_path / "own.toml").write_text(
        f"variants = [{','.join(lines)}]\n[base]\nenvironment = 'deep-sea'\nmax_episodes = 7\n"
        f"[axes]\nsize = [5, 6]\nseed = {list(seeds)}\n"
    )
    return load_sweep(str(tmp_path / "own.toml"))


def test_variants_are_crossed_with_the_axes_and_named_by_what_they_change(tmp_path):
    sweep = variants(
        tmp_path,
        "{strategy = 'gain'}",
        "{strategy = 'gain', prior_scale = 3.0}",
        "{strategy = 'evoi:reduce=sum', prior_scale = 3.0, learning_rate = 1e-5}",
    )
    one_seed = [
        "size-5/gain/seed-0",
        "size-5/gain/prior-scale-3.0/seed-0",
        "size-5/evoi-reduce-sum/prior-scale-3.0/learning-rate-1e-05/seed-0",
        "size-6/gain/seed-0",
        "size-6/gain/prior-scale-3.0/seed-0",
        "size-6/evoi-reduce-sum/prior-scale-3.0/learning-rate-1e-05/seed-0",
    ]
    assert names(sweep.runs()) == one_seed + [name.replace("seed-0", "seed-1") for name in one_seed]
    for run in sweep.runs():
        assert run.config.network.prior_scale == (3.0 if "prior" in str(run.name) else 0.0)
        assert run.config.learner.learning_rate == (1e-5 if "learning" in str(run.name) else 1e-3)


def test_a_variant_takes_the_place_of_an_axis(tmp_path):
    sweep = variants(tmp_path, "{}", "{size = 6, update_every = 2}", seeds=[0])
    assert names(sweep.runs()) == ["size-5/seed-0", "size-6/update-every-2/seed-0", "size-6/seed-0"]


def test_a_variant_that_changes_nothing_is_the_plain_run(tmp_path):
    sweep = variants(tmp_path, "{}", "{prior_scale = 0.0}", "{mapping_seed = 0}", seeds=[0, 1])
    assert names(sweep.runs()) == [
        "size-5/seed-0",
        "size-6/seed-0",
        "size-5/seed-1",
        "size-5/mapping-seed-0/seed-1",
        "size-6/seed-1",
        "size-6/mapping-seed-0/seed-1",
    ]


def test_the_same_variant_in_another_order_is_run_once(tmp_path):
    one, other = "{prior_scale = 3.0, batch_size = 8}", "{batch_size = 8, prior_scale = 3.0}"
    assert len(variants(tmp_path, one, other).runs()) == 4


@pytest.mark.parametrize("override", ["prior_scale=1.0", "prior_scale=[1.0]"])
def test_an_override_wins_over_every_variant(tmp_path, override):
    sweep = variants(tmp_path, "{strategy = 'gain'}", "{strategy = 'gain', prior_scale = 3.0}", "{strategy = 'ucb'}")
    runs = sweep.with_overrides([override, "seed=[4]", "size=5"]).runs()
    assert [(run.config.actor.strategy, run.config.network.prior_scale) for run in runs] == [
        ("gain", 1.0),
        ("ucb", 1.0),
    ]


def test_settings_of_opposite_sign_have_directories_of_their_own(tmp_path):
    sweep = variants(tmp_path, "{strategy = 'gain:scale=-5'}", "{strategy = 'gain:scale=5'}", seeds=[0])
    assert len(set(names(sweep.runs()))) == len(sweep.runs()) == 4


@pytest.mark.parametrize("axes", ["axes = 1", "axes = [1]"])
def test_axes_that_are_no_table_are_an_error(tmp_path, axes):
    (tmp_path / "mine.toml").write_text(f"{axes}\n[base]\nenvironment = 'deep-sea'\n")
    with pytest.raises(UsageError, match="must be a table of lists"):
        load_sweep(str(tmp_path / "mine.toml"))


def test_options_of_an_environment_may_be_a_table(tmp_path):
    (tmp_path / "mine.toml").write_text(
        "[base]\nenvironment = 'gym'\nenv_id = 'FrozenLake-v1'\nenv_options = {is_slippery = false, map_name = '8x8'}\n"
    )
    (planned,) = load_sweep(str(tmp_path / "mine.toml")).runs()
    assert planned.config.env.options == {"is_slippery": False, "map_name": "8x8"}


def test_variants_of_several_tasks_are_named_by_what_differs(tmp_path):
    (tmp_path / "mine.toml").write_text(
        "variants = [{env_id = 'CartPole-v1', num_heads = 10}, {env_id = 'Acrobot-v1', num_heads = 3}]\n"
        "[base]\nenvironment = 'gym'\n"
    )
    names = [str(planned.name) for planned in load_sweep(str(tmp_path / "mine.toml")).runs()]
    assert names == ["cartpole-v1/seed-0", "acrobot-v1/num-heads-3/seed-0"]


def test_an_environment_that_is_no_word_is_an_error(tmp_path):
    (tmp_path / "mine.toml").write_text('[base]\nenvironment = ["deep-sea"]\n')
    with pytest.raises(UsageError, match="environment must be one of"):
        load_sweep(str(tmp_path / "mine.toml")).runs()


def test_every_cell_of_the_sweeps_with_variants_has_the_same_seeds():
    for name in ("deepsea-frontier", "deepsea-ablation", "deepsea-sensitivity"):
        cells = {}
        for run in load_sweep(name).runs():
            cells.setdefault(run.name.parent, []).append(run.config.run.seed)
        assert len({tuple(seeds) for seeds in cells.values()}) == 1


def test_the_sweeps_with_variants_are_as_described():
    frontier, ablation, sensitivity = (
        load_sweep(f"deepsea-{name}").runs() for name in ("frontier", "ablation", "sensitivity")
    )
    assert (len(frontier), len(ablation), len(sensitivity)) == (756, 100, 90)
    assert {run.config.env.size for run in frontier} == set(range(10, 51, 2))
    assert {run.config.env.max_episodes for run in frontier + sensitivity} == {10_000}
    assert {run.config.env.max_episodes for run in ablation} == {2000}
    combinations = {
        (run.config.actor.strategy, run.config.network.prior_scale, run.config.replay.replay) for run in ablation
    }
    assert {
        (strategy, prior, replay)
        for strategy in ("gain", "evoi:reduce=sum")
        for prior in (0.0, 3.0)
        for replay in ("uniform", "prioritized")
    } < combinations
    assert {strategy for strategy, *_ in combinations if strategy.startswith("vote")} == {"vote", "vote:rule=mean"}
    assert all(run.config.learner.update_every in (1, run.config.env.size) for run in sensitivity)
    assert {run.config.env.mapping_seed == run.config.run.seed for run in sensitivity} == {True, False}


def test_a_sweep_is_a_file_of_a_sensible_size_or_a_link_to_one(tmp_path):
    path, content = tmp_path / "mine.toml", tmp_path / "content.toml"
    content.write_text(OWN)
    path.symlink_to(content)
    assert load_sweep(str(path)).name == "mine"
    os.truncate(content, 2**36)
    with pytest.raises(UsageError, match="has 68,719,476,736 bytes"):
        load_sweep(str(path))
    content.unlink()
    os.mkfifo(content)
    with pytest.raises(UsageError, match="is a named pipe, not a file"):
        load_sweep(str(path))


def test_more_runs_than_anybody_can_make_are_not_listed(tmp_path):
    axes = "".join(f"{name} = {list(range(1, 101))}\n" for name in ("seed", "size", "num_heads", "batch_size"))
    (tmp_path / "mine.toml").write_text(f'[base]\nenvironment = "deep-sea"\n[axes]\n{axes}')
    with pytest.raises(UsageError, match="sweep mine: 100,000,000 runs, more than 1,000,000; shorten its axes"):
        load_sweep(str(tmp_path / "mine.toml")).runs()


@pytest.mark.parametrize("name", ["..", "../run", "a/../../b", "/tmp/run", "a/.hidden", "a b", "x" * 201, "a/b\n"])
def test_a_planned_run_stays_below_its_sweep(name):
    with pytest.raises(UsageError, match="cannot be the name of its directory"):
        PlannedRun(PurePosixPath(name), from_flat({"environment": "deep-sea"}))


def test_an_environment_whose_name_leads_out_of_the_directory_is_an_error(tmp_path):
    (tmp_path / "mine.toml").write_text('[base]\nenvironment = "gym"\n[axes]\nenv_id = [".."]\nseed = [0]\n')
    with pytest.raises(UsageError, match=r"run '\.\./seed-0': '\.\.' cannot be the name of its directory"):
        load_sweep(str(tmp_path / "mine.toml")).runs()


@pytest.mark.parametrize("name", ["mine.yaml", "mine.yml"])
def test_a_sweep_in_yaml_is_an_error_that_names_toml(name):
    with pytest.raises(UsageError, match=rf"{name}: files of settings are TOML; write mine\.toml"):
        load_sweep(name)


@pytest.mark.parametrize("content", ["x = " + "[" * 3000 + "]" * 3000, "x = " + "[" * 100_000])
def test_lists_nested_thousands_of_times_are_a_usage_error(tmp_path, content):
    (tmp_path / "deep.toml").write_text(content)
    with pytest.raises(UsageError, match=r"deep\.toml: "):
        load_sweep(str(tmp_path / "deep.toml"))


@pytest.mark.parametrize(
    ("override", "value"),
    [
        ("max_episodes=10k", 10_000),
        ("max_episodes=1e3", 1000),
        ("hidden_sizes=50,50", (50, 50)),
        ("hidden_sizes=[50, 50]", (50, 50)),
        ("snapshot_every=log", "log"),
        ("snapshot_every=none", None),
        ("strategy=evoi:reduce=sum", "evoi:reduce=sum"),
        ('strategy="gain"', "gain"),
    ],
)
def test_an_override_is_written_as_its_flag_or_as_in_toml(override, value):
    (run,) = load_sweep("paper-deepsea").with_overrides(["seed=[0]", "size=[5]", "strategy=gain", override]).runs()
    found = to_flat(run.config)[override.partition("=")[0]]
    assert (tuple(found) if isinstance(found, list) else found) == value


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


@pytest.mark.parametrize(
    ("task", "override", "expected"),
    [
        ("environment = 'deep-sea'", "hidden_sizes=[[8, 8], [16]]", [[8, 8], [16]]),
        ("environment = 'deep-sea'", "hidden_sizes=[8, 8]", [[8, 8]]),
        (LAKE, 'env_options=[["is_slippery=false"], []]', [["is_slippery=false"], []]),
        (LAKE, "env_options=[{is_slippery = false}]", [["is_slippery=false"]]),
    ],
)
@pytest.mark.parametrize("replaces_an_axis", [False, True])
def test_a_list_of_lists_is_an_axis_where_the_setting_is_a_list(tmp_path, task, override, expected, replaces_an_axis):
    name = override.partition("=")[0]
    axis = f"[axes]\n{name} = [[]]" if replaces_an_axis else ""
    (tmp_path / "own.toml").write_text(f"[base]\n{task}\n{axis}")
    runs = load_sweep(str(tmp_path / "own.toml")).with_overrides([override]).runs()
    assert [to_flat(run.config)[name] for run in runs] == expected


def test_what_is_named_twice_is_run_once():
    sweep = load_sweep("paper-deepsea").with_overrides(["seed=[0]", "size=[5, 5]", 'strategy=["gain", "gain:scale=1"]'])
    assert len(sweep.runs()) == 1


def test_the_longest_runs_of_a_seed_come_first():
    runs = in_scheduling_order(load_sweep("paper-deepsea").with_overrides(["seed=[1, 0]", "strategy=gain"]).runs())
    assert names(runs)[:3] == ["size-30/gain/seed-0", "size-25/gain/seed-0", "size-20/gain/seed-0"]
    assert [run.config.run.seed for run in runs] == [0] * 6 + [1] * 6


def atari(**settings):
    small = {"environment": "atari", "game": "Gravitar", "screen_size": 36, "num_heads": 2, "replay_capacity": 1000}
    return PlannedRun(PurePosixPath("run"), from_flat(small | settings))


@pytest.mark.parametrize("more", [{"screen_size": 84}, {"frame_stack": 8}, {"num_heads": 3}])
def test_the_memory_of_runs_together_is_what_each_needs_apart(more):
    small, large = atari(), atari(**more)
    (alone,), (large_alone,) = memory_needed([small]), memory_needed([large])
    assert alone < large_alone
    assert memory_needed([small, large, small]) == [alone, large_alone, alone]


def test_a_run_on_a_gpu_needs_the_memory_of_one_on_the_processor_wherever_it_is_planned():
    assert memory_needed([atari(device="cuda:7")]) == memory_needed([atari()])


@pytest.mark.parametrize("error", [MemoryError("too little"), RuntimeError("can't allocate memory")])
def test_a_run_that_cannot_be_created_needs_no_memory(monkeypatch, error):
    def fail(_config):
        raise error

    monkeypatch.setattr("bootdqn.sweeps.cost.make_components", fail)
    assert memory_needed([atari()]) == [0]


def test_one_game_is_tried_for_all_and_for_runs_of_any_length(monkeypatch):
    made = []
    monkeypatch.setattr(
        "bootdqn.sweeps.cost.make_components", lambda config: made.append(config) or make_components(config)
    )
    runs = [atari(game="Pong"), atari(game="Qbert"), atari(total_frames=400), atari(seed=3), atari(frame_stack=1)]
    assert len(memory_needed(runs)) == 5
    assert [config.env.frame_stack for config in made] == [4, 1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[base]\nenvironment = 'deep-sea'\nsise = 5", "unknown setting 'sise'; did you mean 'size'?"),
        ("[base]\nenvironment = 'deep-sea'\n[axis]\nsize = [5]", "unknown key 'axis'; did you mean 'axes'?"),
        ("[base]\nenvironment = 'deep-sea'\n[axes]\nsize = 5", "axis size must be a list of values, got 5"),
        ("[base]\nenvironment = 'deep-sea'\n[axes]\nsize = []", "axis size must be a list of values"),
        ("[base]\nenvironment = 'deep-sea'\nsize = 3\n[axes]\nsize = [5]", "size is in the base and an axis"),
        ("[base]\nenvironment = 'deep-sea'\nseed = [0, 1]", "seed in [base] is a list of values: [0, 1]; put it under"),
        ("[base]\nenvironment = 'deep-sea'\nhidden_sizes = [[8], [9]]", "hidden_sizes in [base] is a list of values"),
        ("[base]\nenvironment = ['deep-sea']", "environment must be one of"),
        ("[base]\nenvironment = 'deep-see'", "environment must be one of"),
        ("variants = [{sise = 5}]\n[base]\nenvironment = 'deep-sea'", "unknown setting 'sise'; did you mean 'size'?"),
        ("variants = []\n[base]\nenvironment = 'deep-sea'", "tables of settings under [[variants]], got []"),
        ("variants = [3]\n[base]\nenvironment = 'deep-sea'", "tables of settings under [[variants]], got [3]"),
        ("variants = [{seed = 3}]\n[base]\nenvironment = 'deep-sea'", "a variant sets no seed and no environment"),
        ("variant = [{size = 3}]\n[base]\nenvironment = 'deep-sea'", "unknown key 'variant'; did you mean 'variants'?"),
        ("[axes]\nsize = [5]", "expected tables [base] and [axes]"),
        ("[base", "own.toml"),
    ],
)
def test_an_error_in_a_file_is_named(tmp_path, content, message):
    (tmp_path / "own.toml").write_text(content)
    with pytest.raises(UsageError) as caught:
        load_sweep(str(tmp_path / "own.toml")).runs()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("max_episodes", "is not of the form key=value"),
        ("max_episode=3", "did you mean 'max_episodes'?"),
        ("size=ten", "--size must be a whole number, got 'ten'"),
        ("size=[]", "must be a list of values"),
    ],
)
def test_an_error_in_an_override_is_named(override, message):
    with pytest.raises(UsageError) as caught:
        load_sweep("paper-deepsea").with_overrides([override]).runs()
    assert message in str(caught.value)


def test_a_file_that_is_not_there_and_a_name_that_is_none():
    with pytest.raises(UsageError, match=r"nowhere\.toml: No such file"):
        load_sweep("nowhere.toml")
    with pytest.raises(UsageError, match="did you mean 'paper-atari'"):
        load_sweep("paper-atary")
    with pytest.raises(UsageError, match="choose from bsuite-exploration, bsuite-exploration-smoke"):
        load_sweep("zzz")
