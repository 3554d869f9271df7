"""Compile Numba kernels before the clock of a run starts: that takes long once, and says nothing about the run."""

import itertools
from collections.abc import Callable
from contextlib import closing
from functools import cache
from typing import Any

import numpy as np
from numba.core.event import Event, Listener, install_listener

from bootdqn.agent.discrete_learner import DiscreteLearner
from bootdqn.agent.ensemble import make_ensemble
from bootdqn.agent.shared_torso_learner import SharedTorsoLearner
from bootdqn.common.specs import Batch, EnvSpec
from bootdqn.config.agent import ActorConfig, LearnerConfig, NetworkConfig, ReplayConfig, ReplaySampling
from bootdqn.config.envs import DeepSeaConfig
from bootdqn.config.train import TrainConfig
from bootdqn.training.loop import Components, make_components, train

COMPILING = "compiling the kernel, once for this machine ..."


def compile_kernels(config: TrainConfig[Any], components: Components, info: Callable[[str], None]) -> None:
    """Compile the kernels that a run will call, unless they are in Numba's cache, and report it with `info`."""
    compiled, replay = isinstance(components.learner, DiscreteLearner), config.replay.replay
    with install_listener("numba:compile", _FirstStart(lambda: info(COMPILING))):
        if compiled or replay == "prioritized":
            _train_a_little(compiled, replay, several_steps=config.learner.n_step > 1)
        if isinstance(components.learner, SharedTorsoLearner):
            _learn_a_little(components.spec, config.network.hidden_sizes)


class _FirstStart(Listener):
    """Calls a function when Numba first compiles something; loading from its cache does not count."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback, self._called = callback, False

    def on_start(self, event: Event) -> None:  # noqa: ARG002 - as Numba calls it
        if not self._called:
            self._called = True
            self._callback()

    def on_end(self, event: Event) -> None:
        pass


@cache
def _train_a_little(compiled: bool, replay: ReplaySampling, *, several_steps: bool) -> None:
    """Train on the smallest DeepSea, with the settings that decide which kernels are called, and how."""
    config = TrainConfig(
        env=DeepSeaConfig(size=2, mapping_seed=0),
        actor=ActorConfig(strategy="greedy"),
        network=NetworkConfig(num_heads=2, hidden_sizes=(2, 2)),
        learner=LearnerConfig(
            batch_size=2,
            learning_starts=2,
            update_every=1,
            target_every=2,
            n_step=2 if several_steps else 1,
            engine="compiled" if compiled else "autograd",
        ),
        replay=ReplayConfig(replay_capacity=8, replay=replay),
    )
    with closing(make_components(config)) as components:
        for _ in itertools.islice(train(config, components), 8):
            pass
        components.learner.get_state()


@cache
def _learn_a_little(spec: EnvSpec, hidden_sizes: tuple[int, ...]) -> None:
    """Take one update of two heads on observations of this type and shape."""
    network = NetworkConfig(num_heads=2, ensemble="shared", hidden_sizes=hidden_sizes)
    learner = SharedTorsoLearner(LearnerConfig(), make_ensemble(network, spec, np.random.default_rng(0)))
    observation, numbers = np.zeros((2, *spec.observation.shape), spec.observation.dtype), np.zeros(2, np.float32)
    slot, mask = np.zeros(2, np.int64), np.ones((2, 2), np.bool_)
    learner.q_values(observation)
    learner.update(Batch(observation, slot, numbers, numbers, observation, mask, numbers, slot))
