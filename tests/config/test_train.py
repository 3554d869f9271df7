"""One configuration, three forms: nested dataclasses, one flat mapping, the flags of the command line."""

import dataclasses
import json
from dataclasses import replace

import pytest

from bootdqn.config.defaults import DEEP_SEA, DEFAULTS
from bootdqn.config.settings import differences, from_flat, to_flat
from bootdqn.config.train import resolve


def test_the_defaults_on_deep_sea_are_those_of_the_paper():
    paper = {
        "num_heads": 20,
        "hidden_sizes": [50, 50],
        "ensemble": "independent",
        "loss": "squared",
        "learning_rate": 1e-3,
        "discount": 0.99,
        "replay_capacity": 10_000,
        "batch_size": 128,
        "mask_probability": 0.5,
        "learning_starts": 128,
        "update_every": None,
        "max_episodes": 100_000,
        "strategy": "evoi:reduce=sum",
        "warmup_steps": 0,
        "unscaled_move_cost": 0.01,
    }
    flat = to_flat(DEEP_SEA)
    assert {key: flat[key] for key in paper} == paper


def test_no_two_parts_have_a_setting_of_the_same_name():
    for config in DEFAULTS.values():
        names = [
            field.name
            for part in dataclasses.fields(config)
            for field in dataclasses.fields(getattr(config, part.name))
        ]
        assert len(names) == len(set(names))


def test_a_configuration_survives_json():
    config = resolve(replace(DEEP_SEA, run=replace(DEEP_SEA.run, seed=7)))
    assert from_flat(json.loads(json.dumps(to_flat(config)))) == config


def test_what_depends_on_other_settings_is_filled_in():
    config = resolve(from_flat({"environment": "deep-sea", "size": 17, "seed": 5}))
    assert config.env.mapping_seed == 5
    assert (config.learner.update_every, config.learner.target_every) == (17, 17), "both once an episode"
    given = {"mapping_seed": 1, "update_every": 3, "target_every": 2}
    assert given.items() <= to_flat(resolve(from_flat({"environment": "deep-sea", "seed": 5} | given))).items()


def test_actions_that_are_not_sampled_have_no_seed():
    config = resolve(from_flat({"environment": "deep-sea", "randomize_actions": False, "seed": 5}))
    assert config.env.mapping_seed is None
    assert resolve(from_flat(json.loads(json.dumps(to_flat(config))))) == config


def test_a_strategy_is_written_in_one_way():
    assert from_flat({"environment": "deep-sea", "strategy": "evoi:scale=1,reduce=sum"}).actor.strategy == (
        "evoi:reduce=sum"
    )


@pytest.mark.parametrize(
    ("flat", "message"),
    [
        (
            {"environment": "deep-see"},
            "environment must be one of deep-sea, atari, minatar, gym, bsuite, minigrid; got 'deep-see'",
        ),
        ({}, "environment is missing: one of deep-sea, atari, minatar, gym"),
        (
            {"environmnt": "deep-sea"},
            "gym, bsuite, minigrid; 'environmnt' is no setting",
        ),
        ({"environment": "gym", "total_steps": 9}, "the environment gym needs env_id, as in env_id = 'CartPole-v1'"),
        ({"environment": "atari"}, "the environment atari needs game, as in game = 'Gravitar'"),
        (
            {"environment": "bsuite", "bsuite_id": "deep_sea/0", "id": "deep_sea/7"},
            "unknown setting 'id'; did you mean 'bsuite_id'",
        ),
        ({"environment": "deep-sea", "heads": 3}, "unknown setting 'heads'; did you mean 'num_heads'"),
        ({"environment": "gym", "env_id": "CartPole-v1", "steps": 3}, "did you mean 'total_steps'"),
        ({"environment": "deep-sea", "num_head": 3}, "unknown setting 'num_head'; did you mean 'num_heads'"),
        ({"environment": "deep-sea", "num_heads": "3"}, "--num-heads must be a whole number, got '3'"),
        ({"environment": "deep-sea", "num_heads": True}, "--num-heads must be a whole number, got True"),
        ({"environment": "deep-sea", "num_heads": 0}, "--num-heads must be between 1 and 10000, got 0"),
        ({"environment": "deep-sea", "loss": "l1"}, "loss must be one of squared, huber; got 'l1'"),
        ({"environment": "deep-sea", "hidden_sizes": 50}, "--hidden-sizes must be a list, got 50"),
        ({"environment": "deep-sea", "hidden_sizes": []}, "--hidden-sizes must be one or more"),
        ({"environment": "deep-sea", "learning_rate": float("inf")}, "--learning-rate must be finite, got inf"),
        ({"environment": "deep-sea", "mask_probability": 0}, "--mask-probability must be positive and at most 1"),
        ({"environment": "deep-sea", "seed": -1}, "--seed must be between 0 and 4294967295"),
        ({"environment": "deep-sea", "device": "tpu"}, "--device must be cpu, cuda"),
        ({"environment": "deep-sea", "num_envs": 9, "replay_capacity": 17}, "--replay-capacity must be at least 18"),
        (
            {"environment": "deep-sea", "replay_capacity": 99, "n_step": 100},
            "--n-step must be at most 99, .*--replay-cap",
        ),
        (
            {"environment": "deep-sea", "replay_capacity": 99, "num_envs": 4, "n_step": 25},
            "--n-step must be at most 24",
        ),
        ({"environment": "deep-sea", "n_step": 1_000_000_000}, "--n-step must be at most"),
        ({"environment": "deep-sea", "threads": 0}, "--threads must be between 1 and 1024, got 0"),
        ({"environment": "deep-sea", "threads": 1025}, "--threads must be between 1 and 1024, got 1025"),
        ({"environment": "atari", "game": "Pong", "replay_capacity": 4}, "--replay-capacity must be at least 5"),
        ({"environment": "atari", "game": "Pong", "screen_size": 20}, "--screen-size must be at least 36"),
        ({"environment": "deep-sea", "unscaled_move_cost": float("nan")}, "--unscaled-move-cost must be finite"),
        (
            {"environment": "gym", "env_id": "CartPole-v1", "target_every": None},
            "--target-every must be a number of steps, got None",
        ),
        ({"environment": "deep-sea", "strategy": "evio"}, "unknown strategy 'evio'; did you mean 'evoi'"),
    ],
)
def test_a_wrong_setting_is_named(flat, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(").replace(")", r"\)").replace("?", r"\?")):
        from_flat(flat)


def test_as_many_steps_as_the_replay_holds_can_be_added_up():
    settings = {"environment": "deep-sea", "replay_capacity": 99, "num_envs": 4, "n_step": 24}
    assert from_flat(settings).learner.n_step == 24


def test_an_integer_is_a_float_but_not_the_other_way_round():
    assert from_flat({"environment": "deep-sea", "discount": 1}).learner.discount == 1.0
    with pytest.raises(ValueError, match="--size must be a whole number"):
        from_flat({"environment": "deep-sea", "size": 10.0})


def test_differences_name_every_key_that_differs():
    assert differences({"a": 1, "b": 2}, {"b": 3, "c": None, "d": 4}) == {"a": (1, None), "b": (2, 3), "d": (None, 4)}
