"""Variants: no two different algorithms are one variant, and every variant has its own name."""

import pytest

from bootdqn.config.settings import default_settings, from_flat, to_flat
from bootdqn.config.train import resolve
from bootdqn.config.variants import (
    NOT_PART_OF_VARIANT,
    TASK_SETTINGS,
    Variant,
    algorithm,
    base_strategy,
    label,
    variant_of,
)

DEFAULTS = default_settings()


def of(kind="deep-sea", **changes):
    settings = {"environment": kind, "strategy": "gain", "size": 10, "seed": 3} | changes
    return variant_of({key: value for key, value in settings.items() if key in DEFAULTS[kind]}, DEFAULTS[kind])


def another(value):
    """Return some other value, whatever the setting."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 7
    return [9] if isinstance(value, list) else "another"


@pytest.mark.parametrize("kind", DEFAULTS)
def test_every_setting_makes_a_variant_but_those_that_do_not_affect_the_algorithm(kind):
    distinguished = {
        name
        for name, value in DEFAULTS[kind].items()
        if variant_of(DEFAULTS[kind] | {name: another(value)}, DEFAULTS[kind])
        != variant_of(DEFAULTS[kind], DEFAULTS[kind])
    }
    assert distinguished == {*DEFAULTS[kind], "strategy"} - (NOT_PART_OF_VARIANT - {"strategy"}) - TASK_SETTINGS[kind]


def test_settings_in_which_runs_of_one_algorithm_may_differ_are_listed():
    assert sorted(NOT_PART_OF_VARIANT) == [
        "device", "engine", "environment", "log_every", "preset", "seed", "snapshot_every", "strategy", "threads",
    ]  # fmt: skip
    assert TASK_SETTINGS["atari"] == {"game", "total_frames"}


@pytest.mark.parametrize("size", [5, 20])
@pytest.mark.parametrize("seed", [0, 3])
def test_values_that_depend_on_the_size_or_the_seed_are_the_default(size, seed):
    config = resolve(from_flat({"environment": "deep-sea", "size": size, "seed": seed, "strategy": "gain"}))
    assert variant_of(to_flat(config), DEFAULTS["deep-sea"]) == Variant("gain")


def test_a_run_directory_older_than_a_setting_has_its_default():
    new = {"environment": "deep-sea", "strategy": "gain", "prior_scale": 0.0, "a_setting_to_come": None}
    old = {"environment": "deep-sea", "strategy": "gain"}
    assert variant_of(old, DEFAULTS["deep-sea"]) == variant_of(new, DEFAULTS["deep-sea"]) == Variant("gain")
    assert variant_of(new | {"a_setting_to_come": 3}, DEFAULTS["deep-sea"]).settings == (("a_setting_to_come", 3),)


def test_an_update_an_episode_is_the_default_at_all_sizes():
    assert of(size=20, update_every=20) == of(size=30, update_every=30) == of(size=30)
    assert of(size=20, update_every=20) != of(size=30, update_every=20)


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "BootDQN-Gain"),
        ({"strategy": "evoi:reduce=sum", "prior_scale": 3.0}, "BootDQN-EVOI + prior 3"),
        ({"replay": "prioritized"}, "BootDQN-Gain + prioritised"),
        (
            {"replay": "prioritized", "alpha": 0.7, "prior_scale": 1.5},
            "BootDQN-Gain + prior 1.5 + prioritised, alpha=0.7",
        ),
        ({"strategy": "vote:rule=borda"}, "BootDQN-Vote (rule=borda)"),
        ({"strategy": "gain:scale=20.0"}, "BootDQN-Gain (scale=20)"),
        ({"strategy": "evoi:reduce=sum,scale=0.5"}, "BootDQN-EVOI (scale=0.5)"),
        ({"strategy": "evoi:scale=2.0"}, "BootDQN-EVOI (mean, scale=2)"),
        ({"strategy": "greedy", "num_heads": 1, "epsilon": 0.1, "double_q": False}, "DQN, ε 0.1"),
        ({"strategy": "greedy", "num_heads": 1, "epsilon": 0.1}, "Double DQN, ε 0.1"),
        ({"strategy": "greedy", "epsilon": 0.1, "double_q": False}, "BootDQN, ε 0.1, single Q"),
        ({"strategy": "greedy", "num_heads": 1}, "BootDQN, K = 1"),
        (
            {"epsilon": 1.0, "epsilon_end": 0.05, "epsilon_steps": 10_000},
            "BootDQN-Gain, ε 1 to 0.05 in 10,000 steps",
        ),
        ({"n_step": 3, "target_rate": 0.01, "info_bonus": 2.0}, "BootDQN-Gain + 3-step + soft target 0.01 + bonus 2"),
        ({"mapping_seed": 42, "mask_probability": 1.0}, "BootDQN-Gain, fixed map 42, masks p = 1"),
        ({"update_every": 10}, "BootDQN-Gain"),
        ({"update_every": 1}, "BootDQN-Gain, update every step"),
        ({"update_every": 4, "deterministic": False}, "BootDQN-Gain, windy, update every 4"),
        ({"hidden_sizes": [64, 32]}, "BootDQN-Gain, hidden_sizes=64x32"),
    ],
)
def test_a_label_names_the_settings_that_differ(changes, name):
    settings = {"environment": "deep-sea", "strategy": "gain", "size": 10, "seed": 3} | changes
    assert label(variant_of(settings, DEFAULTS["deep-sea"])) == name


@pytest.mark.parametrize("name", ["{0.nothing}", "{:>400000000}", "{", "{}", "{0}{1}", "%s"])
def test_the_name_of_a_setting_is_text_and_no_format(name):
    assert label(Variant("gain", ((name, 3),))) == f"BootDQN-Gain, {name}=3"
    assert label(Variant("gain", (("prior_scale", name),))) == f"BootDQN-Gain + prior {name}"


def test_a_label_has_no_terminal_control_characters():
    assert label(Variant("\x1b[2J", (("new\n", "\x07"),))) == r"\x1b[2J, new\n=\x07"


@pytest.mark.parametrize("environment", ["atari", "minatar"])
def test_on_games_the_papers_evoi_is_the_mean(environment):
    assert label(Variant("evoi", (("prior_scale", 3.0),), environment)) == "BootDQN-EVOI + prior 3"
    assert algorithm("evoi:reduce=sum,scale=2.0", environment).label == "BootDQN-EVOI (sum, scale=2)"
    assert algorithm("evoi:scale=2.0", environment).label == "BootDQN-EVOI (scale=2)"


def test_variants_are_compared_by_their_settings_and_keep_their_environment():
    variant = Variant("evoi", (("num_heads", 3),), "minatar")
    assert variant == Variant("evoi", (("num_heads", 3),))
    assert label(variant.without("num_heads")) == "BootDQN-EVOI"


def test_a_strategy_with_parameters_is_a_form_of_the_known_one_that_is_closest():
    assert base_strategy("evoi:reduce=sum,scale=2.0") == ("evoi:reduce=sum", ("scale=2.0",))
    assert base_strategy("evoi:scale=2.0") == ("evoi", ("scale=2.0",))
    assert base_strategy("mine:size=2") == ("mine", ("size=2",))
