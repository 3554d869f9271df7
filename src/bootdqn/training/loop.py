"""The loop: the only place where environment, actor, replay and learner meet."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bootdqn.agent.actor import Actor
from bootdqn.agent.ensemble import make_ensemble
from bootdqn.agent.learner import Learner, UpdateResult, make_learner
from bootdqn.common.errors import TrainingError, attribute_errors_to
from bootdqn.common.random_streams import RandomStreams
from bootdqn.common.specs import Array, EnvSpec
from bootdqn.config.train import TrainConfig
from bootdqn.envs.factory import Environment, close_environment, make_environment, spec_of
from bootdqn.replay.buffer import ReplayBuffer
from bootdqn.runs.resources import ResourceEstimate, estimate_resources
from bootdqn.training.rollout import checked_observation, legal_actions, mask_illegal_actions

LARGEST_REWARD = float(np.finfo(np.float32).max)
"""The largest that the replay buffer can store."""


class EpisodeResult(NamedTuple):
    """A finished episode."""

    env: int
    head: int
    length: int
    total_reward: float
    bonus: float
    """Added to its rewards by `--info-bonus`."""
    info: dict[str, Any]
    """The environment's info of the last step."""


class StepActions(NamedTuple):
    """How the agent acted in E environments."""

    q: Array
    """(E, K, A): the Q-values of the observations."""
    heads: Array
    """(E,): the active heads."""
    actions: Array
    """(E,): the actions chosen."""


class StepResult(NamedTuple):
    """One step in every environment, with the episodes that it finished and the updates that followed."""

    step: int
    """Environment steps so far, of all environments together."""
    acting: StepActions
    finished: list[EpisodeResult]
    updates: list[UpdateResult]


@dataclass
class LoopState:
    """The state of the loop between two steps."""

    started: bool
    """Whether every environment has been reset."""
    step: int
    """Environment steps so far, of all environments together."""
    learning: bool
    """Whether the first update has been made."""
    observations: Array
    """(E, ...): the observation of each environment."""
    lengths: Array
    """(E,): steps of the current episode."""
    returns: Array
    """(E,): sum of the rewards of the current episode."""
    bonuses: Array
    """(E,): sum of the information bonuses of the current episode."""
    legal: Array | None = None
    """(E, A): legal actions of the observations; None before an environment has ruled out any."""

    def add_step(self, env: int, reward: float, bonus: float) -> None:
        """Count a step of the current episode in `env`."""
        self.lengths[env] += 1
        self.returns[env] += reward
        self.bonuses[env] += bonus

    def set_legal(self, env: int, legal: Array | None) -> None:
        """Set the legal actions (A,) of the observation of `env`; None stands for all."""
        if legal is not None and self.legal is None:
            self.legal = np.ones((len(self.lengths), len(legal)), np.bool_)
        if self.legal is not None:
            self.legal[env] = True if legal is None else legal

    def finish_episode(self, env: int, head: int, info: dict[str, Any]) -> EpisodeResult:
        """Return the finished episode of `env`, and reset its counts."""
        length, total_reward, bonus = int(self.lengths[env]), float(self.returns[env]), float(self.bonuses[env])
        self.abandon_episode(env)
        return EpisodeResult(env, head, length, total_reward, bonus, info)

    def abandon_episode(self, env: int) -> None:
        """Reset the counts of the current episode in `env`."""
        self.lengths[env], self.returns[env], self.bonuses[env] = 0, 0, 0


@dataclass
class Components:
    """The stateful components of one run: environments, actor, learner, replay buffer and random streams."""

    spec: EnvSpec
    environments: list[Environment]
    actor: Actor
    learner: Learner
    replay: ReplayBuffer
    streams: RandomStreams
    loop: LoopState

    def estimate_resources(self) -> ResourceEstimate:
        """Return the memory and disk that the run needs when its replay buffer is full."""
        return estimate_resources(self.learner, self.spec, self.replay, len(self.environments))

    def close(self) -> None:
        """Close the environments."""
        for environment in self.environments:
            close_environment(environment)


def make_components(config: TrainConfig[Any]) -> Components:
    """Build the components of the run that the resolved `config` describes; `close` them at the end.

    Raises:
        ValueError: The configuration is not resolved.
    """
    for name in ("update_every", "target_every"):
        if getattr(config.learner, name) is None:
            raise ValueError(f"configuration is not resolved: {name} is None; call resolve(config) first")
    environments = list[Environment]()
    with ExitStack() as on_error:
        for _ in range(config.run.num_envs):
            environment = make_environment(config.env)
            on_error.callback(close_environment, environment)
            environments.append(environment)
        components = _components_around(environments, config)
        on_error.pop_all()
    return components


def _components_around(environments: list[Environment], config: TrainConfig[Any]) -> Components:
    streams, spec = RandomStreams(config.run.seed), spec_of(environments[0])
    num_envs, num_heads = len(environments), config.network.num_heads
    ensemble = make_ensemble(config.network, spec, streams["networks"])
    return Components(
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
        loop=LoopState(
            started=False,
            step=0,
            learning=False,
            observations=np.zeros((num_envs, *spec.observation.shape), spec.observation.dtype),
            lengths=np.zeros(num_envs, np.int64),
            returns=np.zeros(num_envs),
            bonuses=np.zeros(num_envs),
        ),
    )


def reset_environments(components: Components) -> None:
    """Start the first episode in every environment, each with a seed of its own."""
    for env in range(len(components.environments)):
        seed = int(components.streams[f"environment/{env}"].integers(2**31))
        components.loop.observations[env] = reset_environment(components, env, seed)
    components.loop.started = True


def train(config: TrainConfig[Any], components: Components) -> Iterator[StepResult]:
    """Train without end: act, step, store, and when due sample, update, prioritise, move the target (Algorithm 1).

    Training continues from `components.loop`; new components are reset first. Whenever a result is yielded,
    `components` can be saved.
    """
    environments, actor = components.environments, components.actor
    learner, replay = components.learner, components.replay
    masks, sampling, rules = components.streams["masks"], components.streams["replay"], config.learner
    num_heads, mask_probability = config.network.num_heads, config.replay.mask_probability
    reward_scale = _sign if config.env.clip_rewards else float
    state = components.loop
    if not state.started:
        reset_environments(components)
    while True:
        q = mask_illegal_actions(learner.q_values(state.observations), state.legal)
        actions = actor.act(q, state.step, learning=state.learning, legal=state.legal)
        acting = StepActions(q, actor.heads.copy(), actions)
        bonuses, finished = actor.bonuses(q), []
        for env in range(len(environments)):
            action = int(acting.actions[env])
            observation, reward, terminated, truncated, info, legal = _step(components, env, action)
            mask = masks.random(num_heads) < mask_probability
            learned = reward_scale(reward) + bonuses[env]
            replay.add(
                env, action, learned, observation, mask, terminated=terminated, truncated=truncated, next_legal=legal
            )
            state.add_step(env, reward, bonuses[env])
            if terminated or truncated:
                finished.append(state.finish_episode(env, int(actor.heads[env]), info))
                observation = reset_environment(components, env)
            else:
                state.set_legal(env, legal)
            state.observations[env] = observation
        before, state.step = state.step, state.step + len(environments)
        may_learn, updates = state.step >= rules.learning_starts and len(replay) > 0, []
        for step in range(before + 1, state.step + 1):
            if may_learn and _is_due(step, rules.update_every):
                batch = replay.sample(rules.batch_size, sampling, config.replay.beta_at(state.step))
                updates.append(learner.update(batch))
                replay.update_priorities(batch.slot, updates[-1].td_error)
                state.learning = True
            if _is_due(step, rules.target_every):
                learner.update_target()
        yield StepResult(state.step, acting, finished, updates)


def reset_environment(components: Components, env: int, seed: int | None = None) -> Array:
    """Reset one environment, sample its active head, and return its first observation, which is stored."""
    name = _environment_name(env)
    with attribute_errors_to(name, f" after step {components.loop.step:,}"):
        raw_observation, info = components.environments[env].reset(seed=seed)
        observation = checked_observation(components.spec.observation, name, raw_observation)
        legal = legal_actions(info, components.spec.num_actions, name)
    components.actor.sample_head(env)
    components.replay.start_episode(env, observation, legal)
    components.loop.set_legal(env, legal)
    return observation


def _step(
    components: Components, env: int, action: int
) -> tuple[Array, float, bool, bool, dict[str, Any], Array | None]:
    """Step one environment, and return its checked results, with the legal actions of the next state."""
    name = _environment_name(env)
    try:
        raw_observation, raw_reward, terminated, truncated, info = components.environments[env].step(action)
        reward = float(raw_reward)
        if not abs(reward) <= LARGEST_REWARD:
            raise TrainingError(f"{name} gave the reward {reward}")
        observation = checked_observation(components.spec.observation, name, raw_observation)
        legal = None if terminated else legal_actions(info, components.spec.num_actions, name, over=truncated)
        if legal is not None and not legal.any():
            terminated, legal = True, None  # a state without a legal action has no value to bootstrap from
    except Exception:  # a context manager around every step would take longer than the step
        with attribute_errors_to(name, f" after step {components.loop.step:,}"):
            raise
    return observation, reward, terminated, truncated, info, legal


def _environment_name(env: int) -> str:
    return f"environment {env}"


def _is_due(step: int, every: int | None) -> bool:
    """Return whether something that is done every so many steps is done at `step`."""
    return every is not None and step % every == 0


def _sign(reward: Any) -> float:
    return float(np.sign(reward))
