"""Environments of installed packages, registered when one of them is asked for: they need no `--import`.

Gymnasium itself no longer loads the entry points `gymnasium.envs`, by which packages announce their environments.
"""

import importlib.util
from contextlib import nullcontext
from importlib.metadata import EntryPoint, entry_points

import gymnasium
from gymnasium.envs.registration import find_highest_version, get_env_id, namespace, parse_env_id

from bootdqn.common.errors import install_command

_ROOT = "__root__"
"""Name of entry points whose environments have no namespace."""
_PACKAGES = {"MiniGrid-": "minigrid", "BabyAI-": "minigrid"}
"""Packages without an entry point that register their environments when they are imported, by the start of an id."""
_INSTALL_HINTS = {
    "MinAtar/": install_command("minatar"),
    "MiniGrid-": "pip install minigrid",
    "BabyAI-": "pip install minigrid",
    "ALE/": "train it by bootdqn train atari --game GAME",
}
_loaded: set[str] = set()


def register_installed(env_id: str) -> None:
    """Register environments of installed packages until one of them is `env_id`.

    The entry point of its namespace comes first. Nothing is imported for an environment that is registered already.

    Raises:
        ImportError: The package of its namespace cannot be imported.
    """
    if env_id in gymnasium.registry:
        return
    for start, module in _PACKAGES.items():
        if env_id.startswith(start) and importlib.util.find_spec(module):
            importlib.import_module(module)
    space = env_id.rpartition("/")[0] or _ROOT
    for entry in sorted(entry_points(group="gymnasium.envs"), key=lambda entry: entry.name != space):
        if env_id in gymnasium.registry:
            return
        if entry.value not in _loaded:
            _loaded.add(entry.value)
            failure = _load(entry)
            if failure and entry.name == space != _ROOT:
                raise ImportError(f"{entry.value} failed: {type(failure).__name__}: {failure}") from failure


def versioned_id(env_id: str) -> str:
    """Return an id with its version: one without stands for the latest of those that are registered.

    Example:
        >>> versioned_id("CartPole")
        'CartPole-v1'
    """
    register_installed(env_id)
    space, name, version = parse_env_id(env_id)
    latest = find_highest_version(space, name) if version is None and env_id not in gymnasium.registry else None
    return env_id if latest is None else get_env_id(space, name, latest)


def install_hint(env_id: str) -> str | None:
    """Return how to get the environments of an id's package; None where that is unknown, or it is installed."""
    start = next((start for start in _INSTALL_HINTS if env_id.startswith(start)), None)
    if start is None or any(name.startswith(start) for name in gymnasium.registry):
        return None
    return _INSTALL_HINTS[start]


def _load(entry: EntryPoint) -> Exception | None:
    """Load an entry point, a function that registers environments or a module that does, and return its exception."""
    with nullcontext() if entry.name == _ROOT else namespace(entry.name):  # which an exception would not leave
        try:
            loaded = entry.load()
            if callable(loaded):
                loaded()
        except Exception as error:
            return error
    return None
