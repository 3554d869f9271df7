"""The loop: the only place where environment, actor, replay and learner meet.

It yields one record for each round of steps. Records, progress, evaluation and checkpoints consume that stream;
nothing calls back into the loop.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bootdqn.agent.actor import Actor
from bootdqn.agent.build import make_learner
from bootdqn.agent.learner import Learner, UpdateResult
from bootdqn.common.random_streams import RandomStreams
from bootdqn.common.specs import Array
from bootdqn.envs.make import Environment, make_environment, spec_of
from bootdqn.networks.ensemble import make_ensemble
from bootdqn.replay.ring import RingReplay
from bootdqn.training.config import TrainConfig


class Episode(NamedTuple):
    """A finished episode."""

    env: int
    head: int
    length: int
    total_reward: float
    info: dict[str, Any]
    """What the environment said with the last step."""


class Round(NamedTuple):
    """One step of every environment, and what it led to."""

    step: int
    """Environment steps so far, of all environments together."""
    finished: list[Episode]
    update: UpdateResult | None


@dataclass
class Parts:
    """Everything with state that one run consists of."""

    environments: list[Environment]
    actor: Actor
    learner: Learner
    replay: RingReplay
    streams: RandomStreams


def make_parts(config: TrainConfig[Any]) -> Parts:
    """Build the parts of the run that the resolved `config` describes."""
    streams = RandomStreams(config.run.seed)
    environments = [make_environment(config.env)]
    spec = spec_of(environments[0])
    num_heads = config.network.num_heads
    ensemble = make_ensemble(config.network, spec, streams["networks"])
    return Parts(
        environments=environments,
        actor=Actor(config.actor, len(environments), num_heads, streams["acting"]),
        learner=make_learner(config.learner, ensemble, config.run.device),
        replay=RingReplay(
            spec.observation,
            capacity=config.replay.replay_capacity,
            num_heads=num_heads,
            discount=config.learner.discount,
            num_envs=len(environments),
        ),
        streams=streams,
    )


def train(config: TrainConfig[Any], parts: Parts) -> Iterator[Round]:
    """Train for ever: act, step, store, and when due sample, update, copy to the target (Algorithm 1)."""
    environments, actor, learner, replay = parts.environments, parts.actor, parts.learner, parts.replay
    masks, sampling = parts.streams["masks"], parts.streams["replay"]
    rules, num_heads, mask_probability = config.learner, config.network.num_heads, config.replay.mask_probability
    step, learning = 0, False
    observations = np.stack([_begin_episode(parts, env, seeded=True) for env in range(len(environments))])
    lengths, returns = np.zeros(len(environments), np.int64), np.zeros(len(environments))
    while True:
        q = learner.q_values(observations)
        actions = actor.act(q, step, learning=learning)
        finished = []
        for env, environment in enumerate(environments):
            observation, reward, terminated, truncated, info = environment.step(int(actions[env]))
            mask = masks.random(num_heads) < mask_probability
            replay.add(env, actions[env], float(reward), observation, mask, terminated=terminated, truncated=truncated)
            lengths[env] += 1
            returns[env] += reward
            if terminated or truncated:
                finished.append(Episode(env, int(actor.heads[env]), int(lengths[env]), float(returns[env]), info))
                lengths[env], returns[env] = 0, 0
                observation = _begin_episode(parts, env)
            observations[env] = observation
            step += 1
        update = None
        if len(replay) >= rules.learning_starts and _due(step, rules.update_every, len(environments)):
            update = learner.update(replay.sample(rules.batch_size, sampling))
            learning = True
        if rules.target_every and _due(step, rules.target_every, len(environments)):
            learner.copy_to_target()
        yield Round(step, finished, update)


def _begin_episode(parts: Parts, env: int, *, seeded: bool = False) -> Array:
    """Reset one environment, draw its head, store its first observation and return it."""
    seed = int(parts.streams[f"environment/{env}"].integers(2**32)) if seeded else None
    observation, _ = parts.environments[env].reset(seed=seed)
    parts.actor.draw_head(env)
    parts.replay.begin_episode(env, observation)
    return np.asarray(observation)


def _due(step: int, every: int, num_envs: int) -> bool:
    """Return whether a multiple of `every` lies in the last `num_envs` steps."""
    return step // every > (step - num_envs) // every
