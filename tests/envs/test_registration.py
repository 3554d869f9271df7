"""Environments of installed packages need no --import, and a missing package is named with its command."""

import importlib.metadata
import importlib.util
import sys

import gymnasium
import pytest

from bootdqn.common.errors import UsageError
from bootdqn.config.envs import GymConfig
from bootdqn.envs import registration
from bootdqn.envs.factory import make_environment, spec_of
from bootdqn.envs.minatar import MinAtarGame

MODULE = """
import gymnasium
from gymnasium.envs.toy_text.frozen_lake import FrozenLakeEnv
def register():
    gymnasium.register({env_id!r}, entry_point=FrozenLakeEnv)
"""


@pytest.fixture
def registry(monkeypatch):
    """Remove the environments of a test from Gymnasium's registry, and restore those that it removed."""
    monkeypatch.setattr(registration, "_loaded", set())
    before = dict(gymnasium.registry)
    yield gymnasium.registry
    for env_id in [name for name in gymnasium.registry if "Pond" in name or name == "Later-v0"]:
        del gymnasium.registry[env_id]
    gymnasium.registry.update(before)


def announce(monkeypatch, directory, *entries):
    """Install packages that announce environments: (name of the entry point, module, content)."""
    monkeypatch.syspath_prepend(directory)
    found = []
    for name, module, content in entries:
        (directory / f"{module}.py").write_text(content)
        monkeypatch.delitem(sys.modules, module, raising=False)
        found.append(importlib.metadata.EntryPoint(name, f"{module}:register", "gymnasium.envs"))
    monkeypatch.setattr(registration, "entry_points", lambda group: found if group == "gymnasium.envs" else [])


@pytest.mark.parametrize(
    ("space", "registered", "env_id"),
    [("__root__", "Pond-v0", "Pond-v0"), ("water", "Pond-v0", "water/Pond-v0"), ("w", "w/Pond-v0", "w/Pond-v0")],
)
def test_an_environment_of_an_entry_point_is_made_without_an_import(
    registry, monkeypatch, tmp_path, space, registered, env_id
):
    announce(monkeypatch, tmp_path, (space, "ponds", MODULE.format(env_id=registered)))
    assert env_id not in registry
    assert spec_of(make_environment(GymConfig(env_id=env_id))).num_actions == 4


@pytest.mark.usefixtures("registry")
def test_nothing_is_imported_for_an_environment_that_is_there(monkeypatch, tmp_path):
    announce(monkeypatch, tmp_path, ("__root__", "explosive", "raise SystemError"))
    make_environment(GymConfig(env_id="CartPole-v1"))
    assert "explosive" not in sys.modules


def test_a_broken_package_matters_to_its_own_environments_only(registry, monkeypatch, tmp_path):
    entries = (
        ("broken", "explosive", "raise RuntimeError('boom')"),
        ("water", "ponds", MODULE.format(env_id="Pond-v0")),
    )
    announce(monkeypatch, tmp_path, *entries)
    make_environment(GymConfig(env_id="water/Pond-v0"))
    with pytest.raises(UsageError, match=r"--env-id broken/X-v0: explosive:register failed: RuntimeError: boom"):
        make_environment(GymConfig(env_id="broken/X-v0"))
    make_environment(GymConfig(env_id="FrozenLake-v1"))
    gymnasium.register("Later-v0", entry_point="x:y")
    assert "Later-v0" in registry, "a namespace of the broken package would be in front"


@pytest.mark.usefixtures("registry")
def test_minatar_is_found_and_is_the_game_that_resumes_exactly():
    pytest.importorskip("minatar")
    game = make_environment(GymConfig(env_id="MinAtar/SpaceInvaders-v1", env_options=("sticky_action_prob=0.5",)))
    assert isinstance(game, MinAtarGame)
    assert game.unwrapped.game.sticky_action_prob == 0.5
    assert spec_of(game).num_actions == 4


@pytest.mark.usefixtures("registry")
def test_an_episode_limit_for_minatar_is_an_error_since_it_would_be_ignored():
    pytest.importorskip("minatar")
    with pytest.raises(
        UsageError, match=r"--env-options max_episode_steps=5: .* MinAtar/Breakout-v1 cannot be limited"
    ):
        make_environment(GymConfig(env_id="MinAtar/Breakout-v1", env_options=("max_episode_steps=5",)))


@pytest.mark.usefixtures("registry")
def test_a_misspelt_environment_of_an_installed_package_is_named_with_the_closest_one():
    pytest.importorskip("minatar")
    with pytest.raises(UsageError, match=r"did you mean 'MinAtar/Breakout-v1'\? --import MODULE") as error:
        make_environment(GymConfig(env_id="MinAtar/Breakot-v1"))
    assert "pip" not in str(error.value)


def test_minigrid_is_found(registry, monkeypatch):
    pytest.importorskip("minigrid")
    for env_id in [name for name in registry if name.startswith(("MiniGrid-", "BabyAI-"))]:
        del registry[env_id]
    monkeypatch.delitem(sys.modules, "minigrid")
    assert spec_of(make_environment(GymConfig(env_id="MiniGrid-Empty-5x5-v0"))).observation.shape == (7, 7, 25)


@pytest.mark.parametrize(
    ("env_id", "command"),
    [
        ("MinAtar/Breakout-v1", r"in the clone of bootdqn, pip install .*\.\[minatar\]"),
        ("MiniGrid-Empty-5x5-v0", "pip install minigrid"),
        ("ALE/Pong-v5", "train it by bootdqn train atari"),
    ],
)
def test_a_missing_package_is_named_with_its_command(registry, monkeypatch, env_id, command):
    for name in [name for name in registry if name.startswith(("MinAtar/", "MiniGrid-", "ALE/"))]:
        del registry[name]
    monkeypatch.setattr(registration, "entry_points", lambda group: [])  # noqa: ARG005
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(UsageError, match=f"; {command}") as error:
        make_environment(GymConfig(env_id=env_id))
    assert "did you mean" not in str(error.value)
