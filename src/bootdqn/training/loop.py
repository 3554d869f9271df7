"""The loop: the only place where environment, actor, replay and learner meet.

It yields one record for each round of steps. Records, progress and evaluation consume that stream; nothing calls back
into the loop.
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
    updates: list[UpdateResult]


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
    environments = [make_environment(config.env) for _ in range(config.run.num_envs)]
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
    masks, sampling, rules = parts.streams["masks"], parts.streams["replay"], config.learner
    num_heads, mask_probability = config.network.num_heads, config.replay.mask_probability
    reward_scale = _sign if config.env.clip_rewards else float
    step, learning = 0, False
    observations = np.stack([_begin_episode(parts, env, seeded=True) for env in range(len(environments))])
    lengths, returns = np.zeros(len(environments), np.int64), np.zeros(len(environments))
    while True:
        actions = actor.act(learner.q_values(observations), step, learning=learning)
        finished = []
        for env, environment in enumerate(environments):
            action = int(actions[env])
            observation, reward, terminated, truncated, info = environment.step(action)
            mask = masks.random(num_heads) < mask_probability
            replay.add(env, action, reward_scale(reward), observation, mask, terminated=terminated, truncated=truncated)
            lengths[env] += 1
            returns[env] += reward
            if terminated or truncated:
                finished.append(Episode(env, int(actor.heads[env]), int(lengths[env]), float(returns[env]), info))
                lengths[env], returns[env] = 0, 0
                observation = _begin_episode(parts, env)
            observations[env] = observation
        before, step = step, step + len(environments)
        updates = []
        if step >= rules.learning_starts and len(replay):
            for _ in range(_times_due(before, step, rules.update_every)):
                updates.append(learner.update(replay.sample(rules.batch_size, sampling)))
                learning = True
        if rules.target_every and _times_due(before, step, rules.target_every):
            learner.copy_to_target()
        yield Round(step, finished, updates)


def _begin_episode(parts: Parts, env: int, *, seeded: bool = False) -> Array:
    """Reset one environment, draw its head, store its first observation and return it."""
    seed = int(parts.streams[f"environment/{env}"].integers(2**31)) if seeded else None
    observation, _ = parts.environments[env].reset(seed=seed)
    parts.actor.draw_head(env)
    parts.replay.begin_episode(env, observation)
    return np.asarray(observation)


def _times_due(before: int, after: int, every: int) -> int:
    """Return how many multiples of `every` lie in the steps after `before`, up to `after`."""
    return after // every - before // every


def _sign(reward: Any) -> float:
    return float(np.sign(reward))
