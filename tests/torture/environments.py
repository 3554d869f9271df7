"""Environments for Gymnasium's registry whose episodes do not depend on the seed and the actions alone."""

import gymnasium
import numpy as np

RESTLESS, MORTAL, RESENTFUL = "torture/Restless-v0", "torture/Mortal-v0", "torture/Resentful-v0"


class Restless(gymnasium.Env):
    """Shows noise that does not depend on the seed; an episode has ten steps."""

    observation_space = gymnasium.spaces.Box(0, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self._steps = 0
        return self._look(), {}

    def step(self, _action):
        self._steps += 1
        return self._look(), 1.0, self._steps == 10, False, {}

    def _look(self):
        return np.random.default_rng().random(3, np.float32)


class Mortal(gymnasium.Env):
    """Always looks the same, but each episode is twice as long as the one before it; a step after the end raises."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self._next_length = 5

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self._left = self._next_length
        self._next_length *= 2
        return 0, {}

    def step(self, _action):
        assert self._left > 0, "the episode is over"
        self._left -= 1
        return 0, 1.0, self._left == 0, False, {}


class Resentful(gymnasium.Env):
    """An episode of seven steps pays another first reward if the one before it was left in the middle."""

    observation_space = gymnasium.spaces.Discrete(8)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self):
        self._at, self._offended = 0, False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self._at, self._offended = 0, self._at not in (0, 7)
        return self._at, {}

    def step(self, action):
        self._at += 1
        return self._at, -100.0 if self._at == 1 and self._offended else float(action), self._at == 7, False, {}


for name, made_of in ((RESTLESS, Restless), (MORTAL, Mortal), (RESENTFUL, Resentful)):
    gymnasium.register(name, entry_point=made_of)
