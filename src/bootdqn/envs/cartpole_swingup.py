"""CartpoleSwingup of bsuite (Osband et al. 2020): a pole that hangs down, and a cost for every push of the cart."""

import math
from typing import Any

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from bootdqn.common.random_streams import legacy_generator, legacy_state

_MASS_CART, _MASS_POLE, _HALF_LENGTH = 1.0, 0.1, 0.5
_FORCE, _GRAVITY = 10.0, 9.8
_X_THRESHOLD, _THETA_DOT_THRESHOLD = 3.0, 1.0
_TIMESTEP, _MAX_TIME = 0.01, 10.0
_START_RANGE = 0.05
_MOVE_COST = 0.1

_WIDTH, _HEIGHT = 480, 240
_COLOURS = {
    "background": (244, 246, 250),
    "rewarded": (226, 240, 226),
    "track": (12, 22, 40),
    "cart": (46, 104, 158),
    "pole": (228, 74, 58),
}

Observation = npt.NDArray[np.float32]


class CartpoleSwingup(gym.Env[Observation, int]):
    """CartpoleSwingup of bsuite as a Gymnasium environment, `bootdqn/CartpoleSwingup-v0`.

    The pole starts hanging down. Reward is paid only while it is nearly upright and slow and the cart is near the
    middle, so an agent that does not swing the pole up sees nothing but the cost of moving, and learns to stand still.

    Action: 0 pushes the cart to the left, 1 not at all, 2 to the right.

    Observation (8,): x / 3, velocity / 3, sine and cosine of the pole's angle (cosine 1 is upright), its angular
    velocity, time / 10, and ±1 for whether the cart and the angular velocity are where reward is paid. bsuite's is the
    same as (1, 8).

    Reward: a push costs 0.1, and 1 is paid while cos(angle) > `height_threshold`, |angular velocity| < 1 and
    |x| < `x_reward_threshold`.

    An episode is *terminated* when |x| > 3, and, as in bsuite, also after 10 seconds, which are 1001 steps of 0.01; the
    time is part of the observation. The start is random, seeded by `reset(seed=...)` as bsuite is by its seed; a reset
    without a seed continues the same random stream.

    Args:
        height_threshold: height of the pole above which reward is paid: 0 is horizontal, 1 upright.
        x_reward_threshold: distance of the cart from the middle below which reward is paid.
        render_mode: `"rgb_array"` for an image, or None.

    Example:
        >>> env = CartpoleSwingup()
        >>> observation, _ = env.reset(seed=0)
        >>> observation.shape, bool(observation[3] < -0.99)
        ((8,), True)
        >>> env.step(2)[1]
        -0.1
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 100}  # noqa: RUF012 - as in gym.Env

    def __init__(
        self, height_threshold: float = 0.5, x_reward_threshold: float = 1.0, render_mode: str | None = None
    ) -> None:
        for name, value in (("height_threshold", height_threshold), ("x_reward_threshold", x_reward_threshold)):
            if not math.isfinite(value):
                raise ValueError(f"{name} must be a finite number; got {value}")
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(f"render_mode must be None or one of {self.metadata['render_modes']}; got {render_mode!r}")
        self.render_mode = render_mode
        self.action_space = gym.spaces.Discrete(3)  # type: ignore[assignment]
        self.observation_space = gym.spaces.Box(-np.inf, np.inf, (8,), np.float32)
        self._height_threshold = float(height_threshold)
        self._x_reward_threshold = float(x_reward_threshold)
        self._x = self._x_dot = self._theta = self._theta_dot = self._time = 0.0
        self._over = True
        self._starts: np.random.RandomState | None = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode with the pole hanging down, everything about 0.05 from rest at most."""
        super().reset(seed=seed, options=options)
        if seed is not None or self._starts is None:
            self._starts = legacy_generator(seed, self.np_random)
        # in bsuite's order
        self._x, self._x_dot, turned, self._theta_dot = (
            self._starts.uniform(-_START_RANGE, _START_RANGE) for _ in range(4)
        )
        self._theta = np.pi + turned
        self._time, self._over = 0.0, False
        return self._observation(), {}

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Push the cart for 0.01 seconds; Euler's method with the velocities of before."""
        if self._over:
            raise gym.error.ResetNeeded("the episode is over or not started: call reset() first")
        if action not in (0, 1, 2):
            raise ValueError(f"action must be 0, 1 or 2; got {action!r}")
        push = int(action) - 1
        self._move(push * _FORCE)
        upright = (
            float(np.cos(self._theta)) > self._height_threshold
            and abs(self._theta_dot) < _THETA_DOT_THRESHOLD
            and abs(self._x) < self._x_reward_threshold
        )
        self._over = self._time > _MAX_TIME or abs(self._x) > _X_THRESHOLD
        return self._observation(), upright - abs(push) * _MOVE_COST, self._over, False, {}

    def _move(self, force: float) -> None:
        # bsuite's operations in bsuite's order: the motion is chaotic, and another rounding would soon be another one
        cos, sin = float(np.cos(self._theta)), float(np.sin(self._theta))
        mass, moment = _MASS_CART + _MASS_POLE, _MASS_POLE * _HALF_LENGTH
        pull = (force + moment * self._theta_dot**2 * sin) / mass
        theta_acceleration = (_GRAVITY * sin - cos * pull) / (_HALF_LENGTH * (4 / 3 - _MASS_POLE * cos**2 / mass))
        x_acceleration = pull - moment * theta_acceleration * cos / mass
        self._x += _TIMESTEP * self._x_dot
        self._x_dot += _TIMESTEP * x_acceleration
        self._theta = float(np.remainder(self._theta + _TIMESTEP * self._theta_dot, 2 * np.pi))
        self._theta_dot += _TIMESTEP * theta_acceleration
        self._time += _TIMESTEP

    def _observation(self) -> Observation:
        return np.array(
            [
                self._x / _X_THRESHOLD,
                self._x_dot / _X_THRESHOLD,
                np.sin(self._theta),
                np.cos(self._theta),
                self._theta_dot,
                self._time / _MAX_TIME,
                1.0 if abs(self._x) < self._x_reward_threshold else -1.0,
                1.0 if abs(self._theta_dot) < _THETA_DOT_THRESHOLD else -1.0,
            ],
            np.float32,
        )

    def get_action_meanings(self) -> tuple[str, str, str]:
        """Return the meanings of the actions."""
        return "left", "stay", "right"

    def get_state(self) -> dict[str, Any]:
        """Return the complete state, ready for JSON: motion and random streams."""
        return {
            "motion": [self._x, self._x_dot, self._theta, self._theta_dot, self._time],
            "over": self._over,
            "starts": None if self._starts is None else legacy_state(self._starts),
            "np_random": self.np_random.bit_generator.state,
            "np_random_seed": self.np_random_seed,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Restore what `get_state` returned, exactly."""
        generator = np.random.Generator(np.random.PCG64())
        generator.bit_generator.state = state["np_random"]
        self._np_random, self._np_random_seed = generator, state["np_random_seed"]
        self._starts = None if state["starts"] is None else legacy_generator(state["starts"], generator)
        self._x, self._x_dot, self._theta, self._theta_dot, self._time = map(float, state["motion"])
        self._over = bool(state["over"])

    def render(self) -> npt.NDArray[np.uint8] | None:
        """Return an image (height, width, 3) of the track, green where reward is paid, the cart and the pole."""
        if self.render_mode is None:
            gym.logger.warn(f"nothing to render: make it with a render_mode, {self.metadata['render_modes']}")
            return None
        down, across = np.mgrid[:_HEIGHT, :_WIDTH]
        scale = _WIDTH / (2 * _X_THRESHOLD + 1)
        x, y = (across - _WIDTH / 2) / scale, (_HEIGHT / 2 - down) / scale  # in metres, y upwards
        image = np.empty((_HEIGHT, _WIDTH, 3), np.uint8)
        image[:] = _COLOURS["background"]
        image[abs(x) < self._x_reward_threshold] = _COLOURS["rewarded"]
        image[(abs(y) < 0.015) & (abs(x) <= _X_THRESHOLD)] = _COLOURS["track"]
        image[(abs(x - self._x) < 0.25) & (abs(y) < 0.12)] = _COLOURS["cart"]
        sin, cos = math.sin(self._theta), math.cos(self._theta)
        along = np.clip((x - self._x) * sin + y * cos, 0, 2 * _HALF_LENGTH)
        image[np.hypot(x - self._x - along * sin, y - along * cos) < 0.05] = _COLOURS["pole"]
        return image
