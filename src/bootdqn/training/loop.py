"""The loop: the only place where environment, actor, replay and learner meet."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bootdqn.agent.actor import Actor
from bootdqn.agent.ensemble import make_ensemble
from bootdqn.agent.factory import make_learner
from bootdqn.agent.learner import Learner, UpdateResult
from bootdqn.common.errors import TrainingError, blamed_on
from bootdqn.common.random_streams import RandomStreams
from bootdqn.common.specs import Array, DiscreteSpec, EnvSpec, ObservationSpec
from bootdqn.config.train import TrainConfig
from bootdqn.envs.factory import Environment, make_environment, spec_of
from bootdqn.replay.buffer import ReplayBuffer


def checked_observation(spec: ObservationSpec, culprit: str, observation: Any) -> Array:
    """Return an observation as an array of the type in `spec`.

    Raises:
        TrainingError: The networks have no row for it, it would poison the replay, or its space cannot hold it.
    """
    seen = np.asarray(observation)
    if seen.shape != spec.shape:
        raise TrainingError(f"{culprit} gave an observation of shape {seen.shape}, not {spec.shape}")
    if isinstance(spec, DiscreteSpec):
        if not (0 <= seen < spec.num_values and seen == int(seen)):
            raise TrainingError(f"{culprit} gave the observation {observation}, not one of 0..{spec.num_values - 1}")
        return seen.astype(spec.dtype, copy=False)
    if spec.dtype.kind == "f":
        with np.errstate(over="ignore"):
            taken = seen.astype(spec.dtype, copy=False)
            narrow = taken.astype(np.float32, copy=False)
        if not np.isfinite(narrow).all():
            where = np.argwhere(~np.isfinite(narrow))[0].tolist()
            beyond = " as the networks' float32" if np.isfinite(taken).all() else ""
            raise TrainingError(f"{culprit} gave an observation that is not finite{beyond} at {where}")
        return taken
    if seen.dtype == spec.dtype:
        return seen
    with np.errstate(invalid="ignore"):
        taken = seen.astype(spec.dtype)
    if (taken != seen).any():
        where = np.argwhere(taken != seen)[0].tolist()
        raise TrainingError(
            f"{culprit} gave an observation of {seen.dtype} that its space's {spec.dtype} does not hold, at {where}"
        )
    return taken


LARGEST_REWARD = float(np.finfo(np.float32).max)
"""What the replay can hold."""


class Episode(NamedTuple):
    """A finished episode."""

    env: int
    head: int
    length: int
    total_reward: float
    bonus: float
    """What `--info-bonus` added to its rewards."""
    info: dict[str, Any]
    """What the environment said with the last step."""


class Acting(NamedTuple):
    """How the agent acted in E environments."""

    q: Array
    """(E, K, A): the Q-values of what it saw."""
    heads: Array
    """(E,): the active heads."""
    actions: Array
    """(E,): what it did."""


class Round(NamedTuple):
    """One step of every environment, and what it led to."""

    step: int
    """Environment steps so far, of all environments together."""
    acting: Acting
    finished: list[Episode]
    updates: list[UpdateResult]


@dataclass
class Position:
    """Where the loop stands between two rounds."""

    begun: bool
    """Whether every environment has begun its first episode."""
    step: int
    """Environment steps so far, of all environments together."""
    learning: bool
    """Whether the first update has been made."""
    observations: Array
    """(E, ...): what each environment shows."""
    lengths: Array
    """(E,): steps of the episode under way."""
    returns: Array
    """(E,): rewards of the episode under way, added up."""
    bonuses: Array
    """(E,): what was added to them for information."""

    def add_step(self, env: int, reward: float, bonus: float) -> None:
        """Count a step of the episode under way in `env`."""
        self.lengths[env] += 1
        self.returns[env] += reward
        self.bonuses[env] += bonus

    def finish_episode(self, env: int, head: int, info: dict[str, Any]) -> Episode:
        """Return the episode of `env` that is over, and begin to count the next."""
        length, total_reward, bonus = int(self.lengths[env]), float(self.returns[env]), float(self.bonuses[env])
        self.abandon_episode(env)
        return Episode(env, head, length, total_reward, bonus, info)

    def abandon_episode(self, env: int) -> None:
        """Forget the episode under way in `env`."""
        self.lengths[env], self.returns[env], self.bonuses[env] = 0, 0, 0


@dataclass
class Parts:
    """Everything with state that one run consists of."""

    spec: EnvSpec
    environments: list[Environment]
    actor: Actor
    learner: Learner
    replay: ReplayBuffer
    streams: RandomStreams
    position: Position


def make_parts(config: TrainConfig[Any]) -> Parts:
    """Build the parts of the run that the resolved `config` describes."""
    streams = RandomStreams(config.run.seed)
    environments = [make_environment(config.env) for _ in range(config.run.num_envs)]
    spec = spec_of(environments[0])
    num_envs, num_heads = len(environments), config.network.num_heads
    ensemble = make_ensemble(config.network, spec, streams["networks"])
    return Parts(
        spec=spec,
        environments=environments,
        actor=Actor(config.actor, num_envs, num_heads, streams["acting"]),
        learner=make_learner(config.learner, ensemble, config.run.device),
        replay=ReplayBuffer(
            spec.observation,
            capacity=config.replay.replay_capacity,
            num_heads=num_heads,
            discount=config.learner.discount,
            num_envs=num_envs,
            n_step=config.learner.n_step,
            alpha=config.replay.alpha if config.replay.replay == "prioritized" else None,
        ),
        streams=streams,
        position=Position(
            begun=False,
            step=0,
            learning=False,
            observations=np.zeros((num_envs, *spec.observation.shape), spec.observation.dtype),
            lengths=np.zeros(num_envs, np.int64),
            returns=np.zeros(num_envs),
            bonuses=np.zeros(num_envs),
        ),
    )


def begin(parts: Parts) -> None:
    """Begin the first episode of every environment, each with a seed of its own."""
    for env in range(len(parts.environments)):
        seed = int(parts.streams[f"environment/{env}"].integers(2**31))
        parts.position.observations[env] = _begin_episode(parts, env, seed)
    parts.position.begun = True


def train(config: TrainConfig[Any], parts: Parts) -> Iterator[Round]:
    """Train for ever: act, step, store, and when due sample, update, prioritise, move the target (Algorithm 1).

    It goes on from `parts.position`; parts just made are begun first. Whenever a round is yielded, `parts` are as they
    are between two rounds.
    """
    environments, actor, learner, replay = parts.environments, parts.actor, parts.learner, parts.replay
    masks, sampling, rules = parts.streams["masks"], parts.streams["replay"], config.learner
    num_heads, mask_probability = config.network.num_heads, config.replay.mask_probability
    reward_scale = _sign if config.env.clip_rewards else float
    here = parts.position
    if not here.begun:
        begin(parts)
    while True:
        q = learner.q_values(here.observations)
        acting = Acting(q, actor.heads.copy(), actor.act(q, here.step, learning=here.learning))
        bonuses, finished = actor.bonuses(q), []
        for env in range(len(environments)):
            action = int(acting.actions[env])
            observation, reward, terminated, truncated, info = _step(parts, env, action)
            mask = masks.random(num_heads) < mask_probability
            learned = reward_scale(reward) + bonuses[env]
            replay.add(env, action, learned, observation, mask, terminated=terminated, truncated=truncated)
            here.add_step(env, reward, bonuses[env])
            if terminated or truncated:
                finished.append(here.finish_episode(env, int(actor.heads[env]), info))
                observation = begin_new_episode(parts, env)
            here.observations[env] = observation
        before, here.step = here.step, here.step + len(environments)
        may_learn, updates = here.step >= rules.learning_starts and len(replay) > 0, []
        for step in range(before + 1, here.step + 1):
            if may_learn and step % rules.update_every == 0:
                batch = replay.sample(rules.batch_size, sampling, config.replay.beta_at(here.step))
                updates.append(learner.update(batch))
                replay.change_priorities(batch.slot, updates[-1].td_error)
                here.learning = True
            if rules.target_every and step % rules.target_every == 0:
                learner.update_target()
        yield Round(here.step, acting, finished, updates)


def begin_new_episode(parts: Parts, env: int) -> Array:
    """Reset one environment, draw its head, store its first observation and return it."""
    return _begin_episode(parts, env, seed=None)


def _begin_episode(parts: Parts, env: int, seed: int | None) -> Array:
    with _blamed_on(parts, env):
        shown, _ = parts.environments[env].reset(seed=seed)
        observation = checked_observation(parts.spec.observation, _named(env), shown)
    parts.actor.draw_head(env)
    parts.replay.begin_episode(env, observation)
    return observation


def _step(parts: Parts, env: int, action: int) -> tuple[Array, float, bool, bool, dict[str, Any]]:
    with _blamed_on(parts, env):
        shown, given, terminated, truncated, info = parts.environments[env].step(action)
        reward = float(given)
        if not abs(reward) <= LARGEST_REWARD:
            raise TrainingError(f"{_named(env)} gave the reward {reward}")
        observation = checked_observation(parts.spec.observation, _named(env), shown)
    return observation, reward, terminated, truncated, info


def _blamed_on(parts: Parts, env: int) -> AbstractContextManager[None]:
    return blamed_on(_named(env), f" after step {parts.position.step:,}")


def _named(env: int) -> str:
    return f"environment {env}"


def _sign(reward: Any) -> float:
    return float(np.sign(reward))
