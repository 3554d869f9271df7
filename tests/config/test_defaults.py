"""Presets: settings to start from; explicit settings win, and those of a preset are recorded like any other."""

import json
import warnings

import pytest

import bootdqn
from bootdqn.cli.main import parse
from bootdqn.common.errors import UsageError
from bootdqn.config.defaults import DEFAULTS, EXPLORER, MINIGRID, with_preset
from bootdqn.config.settings import default_settings, describe_settings, differences, from_flat, to_flat
from bootdqn.config.train import resolve
from bootdqn.config.variants import label, variant_of
from bootdqn.sweeps.sweep_file import load_sweep

TASKS = {
    "deep-sea": {},
    "atari": {"game": "Pong"},
    "minatar": {"game": "breakout"},
    "gym": {"env_id": "CartPole-v1"},
    "bsuite": {"bsuite_id": "deep_sea/3"},
}


def test_every_environment_has_both_presets():
    assert set(EXPLORER) == set(DEFAULTS) == set(TASKS)


@pytest.mark.parametrize("kind", TASKS)
def test_the_preset_paper_is_the_defaults(kind):
    paper = from_flat({"environment": kind, "preset": "paper", **TASKS[kind]})
    assert to_flat(paper) == to_flat(DEFAULTS[kind]) | TASKS[kind]


@pytest.mark.parametrize("kind", TASKS)
def test_explorer_changes_what_it_lists_and_nothing_else(kind):
    paper = to_flat(from_flat({"environment": kind, **TASKS[kind]}))
    explorer = to_flat(from_flat({"environment": kind, "preset": "explorer", **TASKS[kind]}))
    changed = {name: value for name, value in explorer.items() if value != paper[name]}
    assert changed == {"preset": "explorer", **EXPLORER[kind]}


@pytest.mark.parametrize("kind", TASKS)
def test_a_setting_that_is_given_wins(kind):
    given = {"environment": kind, "preset": "explorer", "strategy": "ucb", **TASKS[kind]}
    assert from_flat(given).actor.strategy == "ucb"


def test_flags_python_and_sweeps_give_the_same_settings():
    by_flags = parse(["train", "deep-sea", "--preset", "explorer", "--size", "8", "--num-heads", "5"]).config
    flat = {"environment": "deep-sea", "preset": "explorer", "size": 8, "num_heads": 5}
    overrides = ["preset=explorer", "size=[8]", "num_heads=5", "strategy=gain", "seed=[0]", "max_episodes=100000"]
    (planned,) = load_sweep("deepsea-frontier").with_overrides(overrides).runs()
    assert by_flags == from_flat(flat)
    assert to_flat(planned.config) == to_flat(resolve(by_flags))


def test_flags_of_minigrid_keep_its_settings_beside_the_preset():
    config = parse(["train", "minigrid", "--preset", "explorer", "--env-id", "MiniGrid-Empty-5x5-v0"]).config
    assert config.actor.strategy == "gain"
    assert config.learner == MINIGRID.learner


def test_the_order_of_the_flags_does_not_matter():
    words = ["--mask-probability", "0.7", "--preset", "explorer"]
    assert parse(["train", "deep-sea", *words]) == parse(["train", "deep-sea", *words[2:], *words[:2]])


@pytest.mark.parametrize("preset", ["explore", 3, None])
def test_a_preset_that_does_not_exist_is_a_usage_error(preset):
    with pytest.raises(ValueError, match="preset"):
        from_flat({"environment": "deep-sea", "preset": preset})


def test_a_misspelt_preset_on_the_command_line_is_a_usage_error():
    with pytest.raises(UsageError, match="--preset must be one of paper, explorer"):
        parse(["train", "deep-sea", "--preset", "explorar"])


def test_a_run_records_its_preset_and_every_setting_of_it(tmp_path):
    bootdqn.train("deep-sea", tmp_path, preset="explorer", size=3, max_episodes=10, num_heads=2, progress=False)
    recorded = json.loads((tmp_path / "config.json").read_text())
    assert recorded["preset"] == "explorer"
    assert {name: recorded[name] for name in EXPLORER["deep-sea"]} == EXPLORER["deep-sea"]


def test_settings_from_a_preset_are_the_same_run_as_settings_that_were_given():
    preset = to_flat(from_flat({"environment": "deep-sea", "preset": "explorer"}))
    given = to_flat(from_flat({"environment": "deep-sea", **EXPLORER["deep-sea"]}))
    assert not differences(preset, given)


def test_the_start_of_a_run_shows_what_the_preset_sets_and_what_was_changed():
    config = from_flat({"environment": "deep-sea", "preset": "explorer", "size": 8, "prior_scale": 1.0})
    line = describe_settings(config)
    assert line.startswith("preset explorer (strategy gain, mask_probability 1.0, ")
    assert line.endswith(") with size 8, prior_scale 1.0")
    assert "prior_scale 3" not in line
    assert describe_settings(from_flat({"environment": "deep-sea", "seed": 4})) == "preset paper with seed 4"
    assert describe_settings(with_preset(DEFAULTS["deep-sea"], "paper")) == "preset paper"


@pytest.mark.parametrize(
    ("settings", "line"),
    [
        ({"mapping_seed": 7}, "preset paper with mapping_seed 7"),
        ({"size": 8, "target_every": 4}, "preset paper with size 8, target_every 4"),
        ({"size": 8, "target_every": 8}, "preset paper with size 8"),
        ({"size": 8, "update_every": 8}, "preset paper with size 8"),
        ({"size": 8, "update_every": 1}, "preset paper with size 8, update_every 1"),
        ({"environment": "bsuite", "bsuite_id": "deep_sea/3"}, "preset paper with bsuite_id deep_sea/3"),
        ({"environment": "gym", "env_id": "CartPole-v1", "seed": 2}, "preset paper with seed 2"),
    ],
)
def test_the_start_of_a_run_shows_what_differs_from_the_preset(settings, line):
    assert describe_settings(from_flat({"environment": "deep-sea"} | settings)) == line


def test_a_setting_of_the_preset_that_was_given_another_value_is_shown():
    config = from_flat({"environment": "deep-sea", "preset": "explorer", "target_every": 10})
    assert describe_settings(config).endswith(" with target_every 10")


def test_reports_label_its_settings_by_the_name_of_the_preset():
    config = to_flat(resolve(from_flat({"environment": "deep-sea", "preset": "explorer", "num_heads": 10})))
    variant = variant_of(config, default_settings()["deep-sea"])
    assert label(variant) == "BootDQN-Gain + explorer, K = 10"


@pytest.mark.parametrize("name", [name for name in EXPLORER["deep-sea"] if name != "strategy"])
def test_a_run_without_one_of_its_settings_has_another_label(name):
    defaults = default_settings()["deep-sea"]
    config = to_flat(resolve(from_flat({"environment": "deep-sea", "preset": "explorer"})))
    default = config["size"] if name in ("update_every", "target_every") else defaults[name]
    labels = {label(variant_of(config | {name: value}, defaults)) for value in (default, config[name], 7)}
    assert len(labels) == 3
    assert sum("explorer" in one for one in labels) == 1


@pytest.mark.parametrize(
    ("preset", "scale", "warned"), [("paper", 1.0, True), ("explorer", 1.0, False), ("explorer", 2.0, True)]
)
def test_an_embedding_scale_without_effect_is_a_warning(tmp_path, preset, scale, warned):
    settings = {"env_id": "CartPole-v1", "total_steps": 10, "eval_every_steps": None, "embedding_scale": scale}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bootdqn.train("gym", tmp_path, preset=preset, progress=False, **settings)
    assert any("--embedding-scale has no effect" in str(one.message) for one in caught) == warned
