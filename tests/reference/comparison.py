"""The learners under test, and how closely one step of theirs must agree with the slow learner's."""

from dataclasses import dataclass

import numpy as np

from bootdqn.agent.autograd_learner import AutogradLearner
from bootdqn.agent.discrete_learner import DiscreteLearner
from bootdqn.agent.ensemble import make_ensemble
from bootdqn.agent.shared_torso_learner import SharedTorsoLearner
from bootdqn.common.specs import BoxSpec, DiscreteSpec, EnvSpec
from bootdqn.config.agent import LearnerConfig, NetworkConfig
from reference.batches import random_batch
from reference.learning import SlowLearner

SINGLE = 2e-6
"""What rounding to single precision may do, relative to the largest of what is compared."""
CANCELLED = 5e-7
"""What it may do to a sum of gradients that nearly cancel, relative to the largest gradient anywhere."""


@dataclass(frozen=True)
class Kind:
    """A learner and the kind of ensemble it learns."""

    learner: type
    ensemble: str
    discrete: bool
    device: str = "cpu"

    def spec(self, num_values=9, num_actions=3):
        """Return a specification with `num_values` observations, or with arrays of as many numbers."""
        shape = (num_values // 3, 3) if num_values % 3 == 0 else (num_values,)
        observation = DiscreteSpec(num_values) if self.discrete else BoxSpec(shape, np.dtype(np.float32))
        return EnvSpec(observation, num_actions)

    def make(self, spec, *, num_heads=3, hidden_sizes=(7, 5), seed=0, prior_scale=0.0, **config):
        """Return a learner with random parameters and no history. A shared ensemble gets one more layer, its torso."""
        widths = (*hidden_sizes, 6) if self.ensemble == "shared" else hidden_sizes
        network = NetworkConfig(num_heads, self.ensemble, widths, prior_scale)
        ensemble = make_ensemble(network, spec, np.random.default_rng(seed))
        elsewhere = {} if self.device == "cpu" else {"device": self.device}
        return self.learner(LearnerConfig(**config), ensemble, **elsewhere)


KINDS = {
    "tabular": Kind(DiscreteLearner, "independent", discrete=True),
    "heads-discrete": Kind(SharedTorsoLearner, "shared", discrete=True),
    "heads-box": Kind(SharedTorsoLearner, "shared", discrete=False),
    "independent-discrete": Kind(AutogradLearner, "independent", discrete=True),
    "independent-box": Kind(AutogradLearner, "independent", discrete=False),
    "shared-discrete": Kind(AutogradLearner, "shared", discrete=True),
    "shared-box": Kind(AutogradLearner, "shared", discrete=False),
}


def learner_after(updates, kind, *, num_values, seed):
    """Return a learner after some updates on small random batches, its specification, and their generator."""
    spec, rng = kind.spec(num_values=num_values), np.random.default_rng(seed)
    learner = kind.make(spec)
    for _ in range(updates):
        learner.update(random_batch(rng, spec, 3, 4))
    return learner, spec, rng


def copy_of_state(learner):
    """Return the learner's state as it is now; its own arrays change with the next update."""
    return {name: array.copy() for name, array in learner.get_state().items()}


def slow_learner(learner, spec, config):
    """Return the slow learner in the state of `learner`."""
    num_values = spec.observation.num_values if isinstance(spec.observation, DiscreteSpec) else None
    return SlowLearner(learner.get_state(), num_values=num_values, **config)


def assert_same_update(learner, slow, batch, *, learning_rate=1e-3):
    """Let both take a step from the learner's state, and compare everything that comes of it."""
    slow.set_state(learner.get_state())
    result = learner.update(batch)
    head_loss, td_error = slow.update(batch)
    np.testing.assert_allclose(result.head_loss, head_loss, rtol=SINGLE, atol=SINGLE * np.max(head_loss))
    np.testing.assert_allclose(result.td_error, td_error, rtol=SINGLE, atol=SINGLE * (np.max(td_error) + 1))
    assert result.head_loss.dtype == result.td_error.dtype == np.float32
    found, expected = learner.get_state(), slow.get_state()
    assert found.keys() >= expected.keys()
    assert found["adam_steps"] == expected["adam_steps"]
    largest = max(np.abs(value).max() for name, value in expected.items() if name.startswith("first_moment"))
    for name in (name.removeprefix("online.") for name in expected if name.startswith("online.")):
        parts = ("online", "target", "first_moment", "second_moment")
        ours, theirs = ({part: state[f"{part}.{name}"] for part in parts} for state in (found, expected))
        np.testing.assert_array_equal(ours["target"], theirs["target"], err_msg=name)
        gradient_scale = scale(name, theirs["first_moment"])
        first = np.where(gradient_scale > 0, SINGLE * gradient_scale + CANCELLED * largest, 0)
        square_scale = scale(name, theirs["second_moment"])
        second = SINGLE * square_scale + 2 * np.sqrt(0.001 * square_scale) * 10 * first
        _assert_within(ours["first_moment"], theirs["first_moment"], first, f"first moment of {name}")
        _assert_within(ours["second_moment"], theirs["second_moment"], second, f"second moment of {name}")
        allowed = parameter_tolerance(theirs, first, int(expected["adam_steps"]), learning_rate)
        _assert_within(ours["online"], theirs["online"], allowed, name)
    return result


def scale(name, array):
    """Return the largest magnitude, of each head by itself where the array has one part a head."""
    axes = tuple(range(1, array.ndim)) if name.startswith("heads") else None
    return np.abs(array).max(axis=axes, keepdims=True)


def parameter_tolerance(values, first_moment_error, step, learning_rate):
    """Return how far Adam may carry an error of the first moment into the parameters, and the rounding of these.

    A parameter whose moments are zero has no such error: it must not move.
    """
    size = np.sqrt(values["second_moment"] / (1 - 0.999**step)) + 1e-8
    moved = values["second_moment"] + np.abs(values["first_moment"]) > 0
    carried = learning_rate / (1 - 0.9**step) * (first_moment_error + 2e-5 * np.abs(values["first_moment"])) / size
    rounding = np.spacing(np.abs(values["online"]).astype(np.float32)).astype(np.float64)
    return np.where(moved, carried + rounding, 0.0)


def _assert_within(found, expected, allowed, what):
    excess = np.abs(found.astype(np.float64) - expected) - allowed
    worst = np.unravel_index(np.argmax(excess), excess.shape)
    message = f"{what}{[int(i) for i in worst]}: {found[worst]!r}, not {expected[worst]!r}"
    assert (excess <= 0).all(), message
