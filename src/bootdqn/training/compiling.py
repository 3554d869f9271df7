"""Compile Numba kernels before the clock of a run starts: that takes long once, and says nothing about the run."""

import itertools
from collections.abc import Callable
from functools import cache
from typing import Any

from numba.core.event import Event, Listener, install_listener

from bootdqn.agent.compiled_learner import CompiledLearner
from bootdqn.config.agent import ActorConfig, LearnerConfig, NetworkConfig, ReplayConfig, ReplaySampling
from bootdqn.config.envs import DeepSeaConfig
from bootdqn.config.train import TrainConfig
from bootdqn.training.loop import Components, make_components, train

COMPILING = "compiling the kernel, once for this machine ..."


def compile_kernels(config: TrainConfig[Any], components: Components, info: Callable[[str], None]) -> None:
    """Compile the kernels that a run will call, unless they are in Numba's cache, and report it with `info`."""
    compiled, replay = isinstance(components.learner, CompiledLearner), config.replay.replay
    if compiled or replay == "prioritized":
        with install_listener("numba:compile", _FirstStart(lambda: info(COMPILING))):
            _train_a_little(compiled, replay, several_steps=config.learner.n_step > 1)


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
            target_every=2,
            n_step=2 if several_steps else 1,
            engine="fused" if compiled else "autograd",
        ),
        replay=ReplayConfig(replay_capacity=8, replay=replay),
    )
    components = make_components(config)
    for _ in itertools.islice(train(config, components), 8):
        pass
    components.learner.get_state()
