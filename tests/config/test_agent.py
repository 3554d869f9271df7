"""Flags of acting, learning, networks and replay: invalid values and their error messages."""

import math

import pytest

from bootdqn.config.agent import ActorConfig, LearnerConfig, NetworkConfig, ReplayConfig

WRONG = [
    (ActorConfig, {"warmup_steps": -1}, "--warmup-steps must be at least 0, got -1"),
    (ActorConfig, {"strategy": "evio"}, "unknown strategy 'evio'; did you mean 'evoi'?"),
    (ActorConfig, {"strategy": "gain:reduce=sum"}, "gain has no parameter 'reduce'"),
    (LearnerConfig, {"batch_size": 0}, "--batch-size must be at least 1, got 0"),
    (LearnerConfig, {"learning_starts": 0}, "--learning-starts must be at least 1, got 0"),
    (LearnerConfig, {"update_every": -2}, "--update-every must be at least 1, got -2"),
    (LearnerConfig, {"target_every": 0}, "--target-every must be at least 1, got 0"),
    (LearnerConfig, {"learning_rate": 0.0}, "--learning-rate must be positive and below 1e+35, got 0.0"),
    (LearnerConfig, {"learning_rate": -1e-3}, "--learning-rate must be positive and below 1e+35, got -0.001"),
    (LearnerConfig, {"learning_rate": math.inf}, "--learning-rate must be finite, got inf"),
    (LearnerConfig, {"learning_rate": math.nan}, "--learning-rate must be finite, got nan"),
    (LearnerConfig, {"discount": -0.1}, "--discount must be between 0 and 1, got -0.1"),
    (LearnerConfig, {"discount": 1.01}, "--discount must be between 0 and 1, got 1.01"),
    (LearnerConfig, {"discount": math.nan}, "--discount must be finite, got nan"),
    (NetworkConfig, {"num_heads": 0}, "--num-heads must be between 1 and 10000, got 0"),
    (NetworkConfig, {"hidden_sizes": ()}, "--hidden-sizes must be one or more widths, got none"),
    (NetworkConfig, {"hidden_sizes": (5, 0)}, "--hidden-sizes must be between 1 and 1000000, got 0"),
    (ReplayConfig, {"replay_capacity": 0}, "--replay-capacity must be between 1 and 1000000000, got 0"),
    (ReplayConfig, {"mask_probability": 0.0}, "--mask-probability must be positive and at most 1, got 0.0"),
    (ReplayConfig, {"mask_probability": 1.5}, "--mask-probability must be positive and at most 1, got 1.5"),
    (ReplayConfig, {"mask_probability": math.nan}, "--mask-probability must be finite, got nan"),
]
RIGHT = [
    (ActorConfig, {"warmup_steps": 0}),
    (LearnerConfig, {"batch_size": 1, "learning_starts": 1, "update_every": 1, "target_every": 1}),
    (LearnerConfig, {"discount": 0.0}),
    (LearnerConfig, {"discount": 1.0}),
    (LearnerConfig, {"target_every": None}),
    (NetworkConfig, {"num_heads": 1, "hidden_sizes": (1,)}),
    (ReplayConfig, {"replay_capacity": 1, "mask_probability": 1.0}),
]


@pytest.mark.parametrize(("config", "values", "message"), WRONG, ids=str)
def test_a_wrong_value_is_an_error_that_names_the_flag_and_the_value(config, values, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the message is compared whole below
        config(**values)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(("config", "values"), RIGHT, ids=str)
def test_the_last_valid_value_is_accepted(config, values):
    made = config(**values)
    assert {name: getattr(made, name) for name in values} == values


def test_the_defaults_are_the_paper_s_for_deep_sea():
    learner, network, replay = LearnerConfig(), NetworkConfig(), ReplayConfig()
    assert (learner.batch_size, learner.learning_rate, learner.discount, learner.loss) == (128, 1e-3, 0.99, "squared")
    assert (learner.learning_starts, learner.update_every) == (128, None), "an update an episode, see test_train"
    assert (network.num_heads, network.ensemble, network.hidden_sizes) == (20, "independent", (50, 50))
    assert (replay.replay_capacity, replay.mask_probability) == (10_000, 0.5)


def test_a_strategy_is_written_in_one_way_only():
    assert ActorConfig("evoi:reduce=sum,scale=1.0").strategy == ActorConfig("evoi:reduce=sum").strategy
    assert ActorConfig("gain:scale=2").strategy == "gain:scale=2.0"


@pytest.mark.parametrize("settings", [{"loss": "hubr"}, {"engine": "fast"}])
def test_a_word_that_is_no_choice_is_an_error(settings):
    ((name, word),) = settings.items()
    with pytest.raises(ValueError, match=f"--{name} must be one of .*; got '{word}'"):
        LearnerConfig(**settings)
