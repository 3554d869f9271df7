"""The Atari games, by Gymnasium's own wrappers, with a state that can be saved. ALE is imported in this file only.

`make_atari` gives what DQN has learned from since Mnih et al. (2015): one action lasts a few frames, the last two of
them are merged, made grey and small, and the most recent screens are stacked. Rewards are the game's own.

Details of these wrappers that are not all in their documentation:

- The no-ops at the start are frames, not steps, and 1 to `noop_max` of them: never 0. Their number is sampled from the
  generator of the innermost environment, and no FIRE follows.
- Sticky actions are sampled at every frame, the no-ops included. The previous action is forgotten at a reset.
- Before the first step of an episode there is one frame only, so nothing is merged.
- When the game ends within an action, the last observation is the one before it, once more. Nothing is learned from an
  observation after the end. It would matter where an episode is truncated, because values are bootstrapped there:
  ALE's own limit on the frames stops within an action, too, so `AtariGame` keeps the limit, between actions.
"""

import hashlib
import json
from dataclasses import asdict
from types import ModuleType
from typing import Any, SupportsFloat, cast

import gymnasium
import numpy as np
from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation
from numpy.typing import NDArray

from bootdqn.common.errors import UsageError, install_command
from bootdqn.config.envs import AtariConfig

Frames = NDArray[np.uint8]
"""(stack, height, width), the newest frame last."""


def make_atari(config: AtariConfig, render_mode: str | None = None) -> "AtariGame":
    """Return a new game; its observations are (frame_stack, screen_size, screen_size) uint8, the newest screen last.

    Args:
        config: The game and its preprocessing.
        render_mode: None, `"rgb_array"` or `"human"`, for `render`; observations do not depend on it.

    Raises:
        UsageError: The emulator or OpenCV is not installed, or the game lacks the no-op that episodes start with.
    """
    ale_py = _import_ale()
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)  # suppresses the banner of the first emulator
    emulator = gymnasium.make(
        f"ALE/{config.game}-v5",
        obs_type="grayscale",  # unused: AtariPreprocessing reads the screen itself; "rgb" is slower
        frameskip=1,
        repeat_action_probability=config.sticky,
        full_action_space=config.full_action_space,
        max_num_frames_per_episode=None,
        render_mode=render_mode,
        disable_env_checker=True,
    )
    if config.noop_max > 0 and cast(Any, emulator.unwrapped).get_action_meanings()[0] != "NOOP":
        raise UsageError(
            f"the minimal action set of {config.game} has no no-op for the start of an episode: "
            "add --full-action-space, or --noop-max 0"
        )
    preprocessing = AtariPreprocessing if config.max_over_frames else NewestFrame
    screens = preprocessing(
        emulator,
        noop_max=config.noop_max,
        frame_skip=config.frame_skip,
        screen_size=config.screen_size,
        terminal_on_life_loss=config.terminal_on_life_loss,
    )
    return AtariGame(screens, config)


def effective_settings(config: AtariConfig) -> dict[str, Any]:
    """Return the effective settings of `make_atari(config)`, ready for printing and for JSON."""
    game = make_atari(config)
    num_actions = int(cast(gymnasium.spaces.Discrete, game.action_space).n)
    game.close()
    return {
        "game": config.game,
        "frame_skip": config.frame_skip,
        "max_over_frames": config.max_over_frames and config.frame_skip > 1,
        "sticky": config.sticky,
        "action_set": "full" if config.full_action_space else "minimal",
        "num_actions": num_actions,
        "noop_min": min(1, config.noop_max),
        "noop_max": config.noop_max,
        "terminal_on_life_loss": config.terminal_on_life_loss,
        "max_episode_frames": config.max_episode_frames,
        "clip_rewards": config.clip_rewards,
        "screen_size": config.screen_size,
        "frame_stack": config.frame_stack,
    }


class NewestFrame(AtariPreprocessing):
    """`AtariPreprocessing` without the maximum over two frames, which it has no switch for.

    It merges the newest frame with the one before as soon as frames are skipped; with a black one before, the maximum
    is the newest frame.
    """

    def _get_obs(self) -> Frames:
        self.obs_buffer[1].fill(0)
        return cast(Frames, super()._get_obs())  # type: ignore[no-untyped-call]


class AtariGame(FrameStackObservation[Frames, int, Frames]):
    """The stack of a game's recent screens, with a limit on an episode's frames and a state that can be saved.

    An episode is truncated when one more step could take it past `max_episode_frames`.

    The state is the episode so far: how it started, and its actions. Setting it replays the episode, at some thousand
    frames a second. ALE's own `cloneState` is faster but incomplete: it leaves out the action that may stick and the
    state of the video chip, so that another emulator continues differently (Q*bert and Tetris always, other games with
    sticky actions). It does hold everything that outlives a *reset*, such as the random generators, and so serves as
    the start of an episode that was not seeded.

    Args:
        env: The preprocessed game.
        config: Its configuration.
    """

    def __init__(self, env: gymnasium.Env[Frames, int], config: AtariConfig) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self, config=config)  # for `spec`, before the parent's
        super().__init__(env, config.frame_stack, padding_type="reset")
        self.config = config
        self._emulator = cast(Any, self.unwrapped).ale
        self._start: dict[str, Any] | None = None
        self._actions = bytearray()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Frames, dict[str, Any]]:
        """Start a new game. A seed makes everything that follows a function of it and the actions."""
        self._start = self._machine() if seed is None else {"seed": int(seed)}
        self._actions.clear()
        return super().reset(seed=seed, options=options)

    def step(  # type: ignore[override]  # the parent's annotation is a type variable that is not its own
        self, action: int
    ) -> tuple[Frames, SupportsFloat, bool, bool, dict[str, Any]]:
        """Hold `action` for `frame_skip` frames. The reward is the sum of the game's own, not clipped."""
        observation, reward, terminated, truncated, info = super().step(action)
        self._actions.append(int(action))
        if not terminated:
            truncated = info["episode_frame_number"] + self.config.frame_skip > self.config.max_episode_frames
        return observation, reward, terminated, truncated, info

    def get_state(self) -> dict[str, Any]:
        """Return the complete state, made of JSON values and bytes.

        It takes one byte for every step of the episode, and 15 kB if the episode was not seeded.
        """
        return {
            "settings": self._settings(),
            "versions": {"ale_py": _import_ale().__version__, "gymnasium": gymnasium.__version__},
            "start": self._machine() if self._start is None else self._start,
            "actions": None if self._start is None else bytes(self._actions),
            "fingerprint": self._fingerprint(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned, exactly, in this process or in another one.

        Raises:
            ValueError: The state is of a game with other settings.
            UsageError: The replayed episode differs from the saved one.
        """
        if state["settings"] != self._settings():
            raise ValueError(
                f"the state is of a game with {state['settings']}, this one has {self._settings()}: "
                "make the environment with the settings it was saved with"
            )
        start, seed = state["start"], state["start"].get("seed")
        if seed is None:
            self._set_machine(start)
        if state["actions"] is None:
            self._start = None
        else:
            self.reset(seed=seed)
            for action in state["actions"]:
                self.step(action)
        if self._fingerprint() != state["fingerprint"]:
            versions = ", ".join(f"{package} {version}" for package, version in state["versions"].items())
            raise UsageError(
                f"the saved episode of {self.config.game}, played again, came out differently: "
                f"install the versions it was saved with ({versions}), or start a new run"
            )

    def _machine(self) -> dict[str, Any]:
        """Return the state that the next reset depends on: the emulator's memory and the random generators."""
        return {
            "emulator": self._emulator.cloneState(include_rng=True).serialize(),
            "np_random": self.unwrapped.np_random.bit_generator.state,
        }

    def _set_machine(self, machine: dict[str, Any]) -> None:
        self._emulator.restoreState(_import_ale().ALEState(machine["emulator"]))
        generator = np.random.Generator(np.random.PCG64())
        generator.bit_generator.state = machine["np_random"]
        self.unwrapped.np_random = generator

    def _fingerprint(self) -> str:
        """Return a digest of the emulator, the generators and the screens, to verify a replay."""
        machine = self._machine()
        digest = hashlib.sha256(machine["emulator"])
        digest.update(json.dumps(machine["np_random"], sort_keys=True).encode())
        for screen in self.obs_queue:
            digest.update(screen.tobytes())
        return digest.hexdigest()

    def _settings(self) -> dict[str, Any]:
        settings = asdict(self.config)
        del settings["clip_rewards"], settings["total_frames"]  # they do not change the game
        return settings


def _import_ale() -> ModuleType:
    """Return `ale_py`; importing it registers the games with Gymnasium."""
    try:
        import ale_py
        import cv2  # noqa: F401 - AtariPreprocessing scales with it
    except ImportError as error:
        raise UsageError(
            f"the Atari games need the emulator and OpenCV: {install_command('atari')} ({error})"
        ) from error
    return ale_py
