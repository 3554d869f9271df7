"""The peers on images: a plain PyTorch BootDQN that loops over its heads, and Stable-Baselines3's DQN with one head.

Both take the game, the network, the batch size and the update cadence of the comparison, on PyTorch as it comes.
"""

import copy
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch
from torch import nn

from bootdqn.exploration.formulas import evoi

LEARNING_RATE, DISCOUNT, BATCH_SIZE, UPDATE_EVERY, LEARNING_STARTS = 1e-4, 0.99, 32, 4, 50


@dataclass(frozen=True)
class Network:
    """A convolutional torso and one hidden layer, on images with channels first."""

    convolutions: tuple[tuple[int, int, int], ...]
    """Channels, kernel and stride of each layer."""
    features: int
    """Outputs of the torso."""
    hidden: int
    scale: float
    """Factor of the pixels."""

    def torso(self, channels: int) -> nn.Sequential:
        """Return the convolutions, each with a ReLU, flattened."""
        layers: list[nn.Module] = []
        for out, kernel, stride in self.convolutions:
            layers += [nn.Conv2d(channels, out, kernel, stride), nn.ReLU()]
            channels = out
        return nn.Sequential(*layers, nn.Flatten())

    def head(self, num_actions: int) -> nn.Sequential:
        """Return one head."""
        return nn.Sequential(nn.Linear(self.features, self.hidden), nn.ReLU(), nn.Linear(self.hidden, num_actions))


class PlainAgent:
    """BootDQN-EVOI with one module for each head and a loop over them."""

    def __init__(self, network: Network, num_heads: int, channels: int, num_actions: int) -> None:
        self.torso, self._scale = network.torso(channels), network.scale
        self.heads = nn.ModuleList(network.head(num_actions) for _ in range(num_heads))
        self.target_torso, self.target_heads = copy.deepcopy(self.torso), copy.deepcopy(self.heads)
        self.optimizer = torch.optim.Adam([*self.torso.parameters(), *self.heads.parameters()], lr=LEARNING_RATE)

    def act(self, observation: np.ndarray, head: int) -> int:
        """Return the action that is best by one head's values and EVOI."""
        with torch.no_grad():
            features = self.torso(torch.from_numpy(observation[None]).float() * self._scale)
            q = torch.cat([each(features) for each in self.heads])
        return int((q[head] + evoi(q)).argmax())

    def update(self, batch: tuple[torch.Tensor, ...]) -> None:
        """Take one double-DQN step of every head."""
        observation, action, reward, next_observation, going_on, mask = batch
        features = self.torso(observation.float() * self._scale)
        with torch.no_grad():
            next_features = self.torso(next_observation.float() * self._scale)
            target_features = self.target_torso(next_observation.float() * self._scale)
        losses = []
        for index, (head, target_head) in enumerate(zip(self.heads, self.target_heads, strict=True)):
            with torch.no_grad():
                best = head(next_features).argmax(dim=1, keepdim=True)
                target = reward + DISCOUNT * going_on * target_head(target_features).gather(1, best)[:, 0]
            value = head(features).gather(1, action[:, None])[:, 0]
            loss = nn.functional.smooth_l1_loss(value, target, reduction="none")
            losses.append((mask[:, index] * loss).sum() / mask[:, index].sum().clamp(min=1))
        self.optimizer.zero_grad()
        torch.stack(losses).mean().backward()
        self.optimizer.step()


def plain(
    make_env: Callable[[], gymnasium.Env[Any, int]], network: Network, num_heads: int, capacity: int = 2000
) -> Iterator[None]:
    """Train the plain agent without end, a step at a time, with whole observations in a ring buffer."""
    env, rng = make_env(), np.random.default_rng(0)
    shape, dtype = env.observation_space.shape, env.observation_space.dtype
    agent = PlainAgent(network, num_heads, shape[0], int(env.action_space.n))
    observations = np.zeros((2, capacity, *shape), dtype)
    actions, rewards = np.zeros(capacity, np.int64), np.zeros(capacity, np.float32)
    going_on, masks = np.zeros(capacity, np.float32), np.zeros((capacity, num_heads), np.float32)
    observation, head = env.reset(seed=0)[0], 0
    for step in itertools.count(1):
        action = agent.act(observation, head)
        following, reward, terminated, truncated, _ = env.step(action)
        slot = (step - 1) % capacity
        observations[0, slot], observations[1, slot] = observation, following
        actions[slot], rewards[slot], going_on[slot] = action, np.sign(reward), not terminated
        masks[slot] = rng.random(num_heads) < 1.0
        observation = following
        if terminated or truncated:
            observation, head = env.reset()[0], int(rng.integers(num_heads))
        if step >= LEARNING_STARTS and step % UPDATE_EVERY == 0:
            chosen = rng.integers(0, min(step, capacity), BATCH_SIZE)
            arrays = (observations[0], actions, rewards, observations[1], going_on, masks)
            agent.update(tuple(torch.from_numpy(array[chosen]) for array in arrays))
        yield


def stable_baselines3(
    make_env: Callable[[], gymnasium.Env[Any, int]], network: Network, capacity: int = 2000
) -> Callable[[int], object]:
    """Return Stable-Baselines3's DQN with one head, which trains for as many steps as it is called with."""
    from stable_baselines3 import DQN
    from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

    class Torso(BaseFeaturesExtractor):
        """The torso of the comparison."""

        def __init__(self, observation_space: gymnasium.Space[Any]) -> None:
            super().__init__(observation_space, network.features)
            self.layers = network.torso(observation_space.shape[0])

        def forward(self, observation: torch.Tensor) -> torch.Tensor:
            return self.layers(observation * network.scale)

    model = DQN(
        "CnnPolicy",
        make_env(),
        learning_rate=LEARNING_RATE,
        gamma=DISCOUNT,
        batch_size=BATCH_SIZE,
        train_freq=UPDATE_EVERY,
        gradient_steps=1,
        learning_starts=LEARNING_STARTS,
        buffer_size=capacity,
        target_update_interval=10_000,
        exploration_initial_eps=0.01,
        exploration_final_eps=0.01,
        policy_kwargs={
            "features_extractor_class": Torso,
            "net_arch": [network.hidden],
            "normalize_images": False,
        },
        device="cpu",
    )
    return lambda steps: model.learn(steps, reset_num_timesteps=False)
