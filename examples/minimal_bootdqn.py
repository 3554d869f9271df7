"""Bootstrapped DQN that explores by the expected value of information, on DeepSea, in one file.

    python minimal_bootdqn.py                                     # BootDQN-EVOI solves a 10 x 10 grid in seconds
    python minimal_bootdqn.py --strategy gain --size 20 --seed 3  # or greedy, ucb; --help lists the settings

The paper: S. Plataniotis, C. Akasiadis, G. Chalkiadakis, "Value of Information-Enhanced Exploration in Bootstrapped
DQN", IJCNN 2025. Equations, algorithms and line numbers below are the paper's; results are in docs/reproduction.md.
The settings are those of `bootdqn train deep-sea`; tests/examples/test_minimal.py compares the two, update by update.

Shapes: K heads, A actions, B transitions in a batch. Q-values of a state are (K, A), of a batch (B, K, A).
"""

import argparse
import copy
import dataclasses
from itertools import pairwise
from typing import NamedTuple

import gymnasium as gym
import numpy as np
import torch
from torch import nn


@dataclasses.dataclass
class Config:
    """The settings; each field is a flag. "Ours": the paper does not state it."""

    strategy: str = "evoi"  # greedy (BootDQN), ucb, gain or evoi
    reduce: str = "sum"  # EVOI over heads: "mean" is equation 2, "sum" is what the paper uses on DeepSea
    size: int = 10  # N: the side of the grid and the length of an episode
    seed: int = 0
    max_episodes: int = 100_000
    num_heads: int = 20  # K independent networks
    hidden_size: int = 50  # width of the two hidden layers
    learning_rate: float = 1e-3  # Adam
    discount: float = 0.99  # ours
    batch_size: int = 128  # B
    replay_capacity: int = 10_000
    mask_probability: float = 0.5  # p: the chance that a head may learn from a transition
    learning_starts: int = 128  # transitions before the first update; ours
    update_every: int | None = None  # steps from one update to the next; None: N, so one an episode
    target_every: int | None = None  # steps from one target copy to the next; None: N


# The environment


class DeepSea(gym.Env):
    """Sink one row a step; only N times "right" finds the treasure (Osband et al. 2020, bsuite)."""

    def __init__(self, size: int, seed: int) -> None:
        self.size = size
        self.right = np.random.RandomState(seed).binomial(1, 0.5, (size, size))  # the action that means right, per cell
        self.observation_space, self.action_space = gym.spaces.Discrete(size * size), gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        """Start at the top left."""
        super().reset(seed=seed, options=options)
        self.row = self.column = 0
        self.bad_episode = False  # whether it went left on the diagonal: then the treasure is out of reach
        return 0, {"bad_episode": False}

    def step(self, action):
        """Go right for 0.01 / N, or left for nothing; right in the last column pays 1."""
        right = action == self.right[self.row, self.column]
        reward = (1.0 if self.column == self.size - 1 else 0.0) - 0.01 / self.size if right else 0.0
        self.bad_episode |= bool(not right and self.column == self.row)
        self.row, self.column = self.row + 1, int(np.clip(self.column + (1 if right else -1), 0, self.size - 1))
        terminated = self.row == self.size
        state = (self.row - terminated) * self.size + self.column
        return state, reward, terminated, False, {"bad_episode": self.bad_episode}


# Exploration: Q-values (K, A) of one state in, scores (A,) out; the highest score is the action


def gain(q: torch.Tensor) -> torch.Tensor:
    """Return the gain of information (K, A) of every head and action (equation 1)."""
    mean = q.mean(dim=0)  # (A,)
    best = mean.argmax()
    second_mean = mean[torch.arange(len(mean)) != best].max()
    result = q - mean[best]  # another action may be better than the best ...
    result[:, best] = second_mean - q[:, best]  # ... and the best may be worse than the second best
    return result.clamp(min=0)


def evoi(q: torch.Tensor, reduce: str) -> torch.Tensor:
    """Return the expected value of information (A,) (equation 2)."""
    return gain(q).mean(dim=0) if reduce == "mean" else gain(q).sum(dim=0)


def scores(q: torch.Tensor, head: int, strategy: str, reduce: str) -> torch.Tensor:
    """Return the score (A,) of every action for the active head (Algorithm 2)."""
    if strategy == "greedy":
        return q[head]
    if strategy == "ucb":
        return q.mean(dim=0) + q.std(dim=0, correction=0)  # the population's deviation; ours
    return q[head] + (gain(q)[head] if strategy == "gain" else evoi(q, reduce))


# Learning


class Ensemble(nn.Module):
    """K independent networks with two hidden layers on the one-hot state; weights are (K, in, out)."""

    def __init__(self, num_heads: int, num_states: int, hidden_size: int, num_actions: int) -> None:
        super().__init__()
        self.weights, self.biases = nn.ParameterList(), nn.ParameterList()
        for size_in, size_out in pairwise((num_states, hidden_size, hidden_size, num_actions)):
            bound = size_in**-0.5  # PyTorch's default for one head
            self.weights.append(torch.empty(num_heads, size_in, size_out).uniform_(-bound, bound))
            self.biases.append(torch.empty(num_heads, 1, size_out).uniform_(-bound, bound))

    def forward(self, state: torch.Tensor) -> torch.Tensor:
        """Map states (B,) to Q-values (B, K, A)."""
        x = nn.functional.one_hot(state, self.weights[0].shape[1]).to(self.weights[0])  # (B, N * N)
        for weight, bias in zip(self.weights[:-1], self.biases[:-1], strict=True):
            x = (x @ weight + bias).relu()  # (K, B, hidden_size)
        return (x @ self.weights[-1] + self.biases[-1]).transpose(0, 1)


class Batch(NamedTuple):
    """B transitions."""

    state: torch.Tensor  # (B,)
    action: torch.Tensor  # (B,)
    reward: torch.Tensor  # (B,)
    terminated: torch.Tensor  # (B,)
    next_state: torch.Tensor  # (B,)
    mask: torch.Tensor  # (B, K): which heads may learn from the transition


def td_errors(online: Ensemble, target: Ensemble, batch: Batch, discount: float) -> torch.Tensor:
    """Return every head's value less its double-DQN target, (B, K)."""
    with torch.no_grad():
        best = online(batch.next_state).argmax(dim=-1, keepdim=True)  # (B, K, 1): the online networks choose ...
        next_value = target(batch.next_state).gather(-1, best).squeeze(-1)  # (B, K): ... what the target ones value
        next_value[batch.terminated] = 0
    taken = batch.action[:, None, None].expand(*best.shape)
    return online(batch.state).gather(-1, taken).squeeze(-1) - (batch.reward[:, None] + discount * next_value)


def update(online: Ensemble, target: Ensemble, optimizer, batch: Batch, discount: float) -> torch.Tensor:
    """Take one gradient step on the mean loss over heads (Algorithm 1, lines 10 to 13); return the losses (K,)."""
    squared = td_errors(online, target, batch, discount).square()
    losses = (batch.mask * squared).sum(dim=0) / batch.mask.sum(dim=0).clamp(min=1)  # (K,)
    optimizer.zero_grad()
    losses.mean().backward()
    optimizer.step()
    return losses.detach()


def train(config: Config) -> int | None:
    """Train until DeepSea is solved (Algorithm 1); return the episode in which it was, or None."""
    rng = np.random.default_rng(config.seed)
    torch.manual_seed(config.seed)
    env = DeepSea(config.size, config.seed)
    num_states, num_actions = int(env.observation_space.n), int(env.action_space.n)
    online = Ensemble(config.num_heads, num_states, config.hidden_size, num_actions)
    target = copy.deepcopy(online)
    optimizer = torch.optim.Adam(online.parameters(), lr=config.learning_rate)
    replay: list[tuple] = []
    step = good = 0
    for episode in range(1, config.max_episodes + 1):
        (state, _), head, terminated = env.reset(), int(rng.integers(config.num_heads)), False  # lines 2, 16 and 17
        while not terminated:
            with torch.no_grad():
                q = online(torch.tensor([state]))[0]  # (K, A)
            action = int(scores(q, head, config.strategy, config.reduce).argmax())  # line 5
            next_state, reward, terminated, _, info = env.step(action)
            mask = rng.random(config.num_heads) < config.mask_probability  # line 7
            slot = step % config.replay_capacity
            replay[slot : slot + 1] = [(state, action, np.float32(reward), terminated, next_state, mask)]  # line 8
            state, step = next_state, step + 1
            if step >= config.learning_starts and step % (config.update_every or config.size) == 0:
                sampled = [replay[i] for i in rng.integers(len(replay), size=config.batch_size)]  # line 10
                batch = Batch(*(torch.from_numpy(np.array(column)) for column in zip(*sampled, strict=True)))
                update(online, target, optimizer, batch, config.discount)
            if step % (config.target_every or config.size) == 0:
                target.load_state_dict(online.state_dict())
        good += not info["bad_episode"]
        if episode % 50 == 0:
            print(f"episode {episode}: {good} good ones so far")
        if episode - good < 0.9 * episode and good >= 10:  # bsuite's rule, and (ours) at least 10 good episodes
            return episode
    return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="BootDQN, UCB, Gain and EVOI on DeepSea.")
    for field in dataclasses.fields(Config):
        choices = {"strategy": ("greedy", "ucb", "gain", "evoi"), "reduce": ("mean", "sum")}.get(field.name)
        kind = int if field.default is None else type(field.default)
        name = "--" + field.name.replace("_", "-")
        parser.add_argument(name, type=kind, default=field.default, choices=choices, help="default: %(default)s")
    torch.set_num_threads(1)  # networks this small are fastest on one thread
    solved_at = train(Config(**vars(parser.parse_args())))
    print(f"solved at episode {solved_at}" if solved_at else "not solved")
