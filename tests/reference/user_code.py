"""User code, and processes that have not imported it yet."""

import os
import sys
from textwrap import dedent

import gymnasium

from bootdqn.common import user_code as user_code
from bootdqn.exploration import registry

STRATEGY = """
    from dataclasses import dataclass
    from typing import ClassVar

    import bootdqn


    @dataclass(frozen=True)
    class Mine(bootdqn.Strategy):
        name: ClassVar[str] = "mine"
        scale: float = 1.0

        def scores(self, q, head):
            return bootdqn.head_values(q, head) + self.scale * q.std(axis=-2)
"""
HELD_ELSEWHERE = f"""
    import os, time
    from dataclasses import dataclass
    from pathlib import Path
    from typing import ClassVar

    import bootdqn

    calls = 0


    @dataclass(frozen=True)
    class Held(bootdqn.Strategy):
        name: ClassVar[str] = "held"

        def scores(self, q, head):
            global calls
            calls += 1
            released = Path(__file__).with_name("released")
            while calls > 60 and os.getpid() != {os.getpid()} and not released.exists():
                time.sleep(0.05)
            if calls > 60 and released.exists() and str(os.getpid()) in released.read_text().split():
                time.sleep(0.1)
            return bootdqn.head_values(q, head)
"""
"""Greedy, but no process except this one, where the tests run, gets past its 60th action until a file says so.

Processes whose ids are in that file stay slow, so that they can be stopped before their run ends.
"""
ENVIRONMENT = """
    import gymnasium
    from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv

    gymnasium.register("Mine-v0", entry_point=FrozenLakeEnv, max_episode_steps=10)
"""
FULL_DISK_ELSEWHERE = f"""
    import errno, os
    from bootdqn.training import trainer


    def write(path, content, write=trainer.write_json_atomically):
        if "full" in path.parts:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, content)


    if os.getpid() != {os.getpid()}:
        trainer.write_json_atomically = write
"""
"""No process but this one, where the tests run, can write a summary below a directory named full."""


class UserCode:
    """Modules in a directory, as a user writes them there."""

    def __init__(self, directory):
        self.directory = directory
        self._registry, self._path = set(gymnasium.registry), list(sys.path)
        self.forget()

    def write(self, module, text):
        (self.directory / f"{module}.py").write_text(dedent(text))

    def import_environments(self, module):
        user_code.import_environments(module)

    def load_strategy(self, class_path):
        return registry.load_strategy(class_path)

    def forget(self):
        """Make this process one that has imported nothing from the directory, and nothing by request."""
        for known in (user_code._IMPORTED, registry._REGISTERED, registry._CLASS_PATHS):
            known.clear()
        sys.path[:] = self._path
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None)).startswith(str(self.directory)):
                del sys.modules[name]
        for name in set(gymnasium.registry) - self._registry:
            del gymnasium.registry[name]
