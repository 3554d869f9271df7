"""Environments that misbehave. A process that imports this module knows them."""

import resource

import gymnasium
import numpy as np

OUT_OF_MEMORY = {"environment": "gym", "env_id": "bootdqn-test/OutOfMemory-v0", "imports": [__name__]}


class OutOfMemory(gymnasium.Env):
    """Limits the address space of its process to little more than it has, and then asks for a lot."""

    observation_space = gymnasium.spaces.Discrete(4)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self._steps = 0
        return 0, {}

    def step(self, _action):
        self._steps += 1
        if self._steps == 20:
            with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - a file of the kernel's
                now = int(file.read().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (now + 2**24, resource.RLIM_INFINITY))
            np.ones(2**30, np.uint8)
        return self._steps % 4, 0.0, False, False, {}


gymnasium.register(OUT_OF_MEMORY["env_id"], entry_point=OutOfMemory)
