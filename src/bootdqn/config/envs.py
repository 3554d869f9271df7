"""Flags of the environments."""

# ruff: noqa: D102 - most properties are documented in their base

import re
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

from bootdqn.common.fields import Flag, NonNegativeInt, PositiveInt, Range, check_fields, parse_as
from bootdqn.common.specs import LARGEST_STACK, SMALLEST_SCREEN
from bootdqn.common.text import did_you_mean
from bootdqn.common.user_code import ModuleName, UserCodeNotImportedError, imported_environments
from bootdqn.config.bsuite import BsuiteConfig
from bootdqn.config.env_base import BaseEnvConfig, EpisodeBudget, StepBudget

Seed = Annotated[int, Range(ge=0, le=2**32 - 1)]


@dataclass(frozen=True)
class DeepSeaConfig(EpisodeBudget):
    """The DeepSea environment, and when to stop."""

    kind: ClassVar[str] = "deep-sea"
    required_field: ClassVar[str | None] = None
    size: Annotated[int, Range(ge=1, le=1000)] = 10
    """N, the side of the grid and the length of an episode."""
    max_episodes: PositiveInt = 100_000
    """Stop after this many episodes, solved or not."""
    stop_when_solved: bool = True
    """Stop once both readings of "solved" hold."""
    eval_every_steps: PositiveInt | None = None
    """Environment steps from one evaluation to the next (None: no evaluation)."""
    deterministic: bool = True
    """Turn off for the windy version: a move right may fail, and the last rewards are noisy."""
    randomize_actions: bool = True
    """Sample for each cell which action means right."""
    mapping_seed: Seed | None = None
    """Seed of --randomize-actions (None: the run's seed)."""
    unscaled_move_cost: float = 0.01
    """Cost of N moves to the right together."""

    @property
    def label(self) -> str:
        return str(self.size)

    @property
    def max_episode_steps(self) -> int:
        return self.size

    @property
    def max_training_steps(self) -> int:
        return self.max_episodes * self.max_episode_steps

    @property
    def default_update_every(self) -> int:
        return self.size

    def __post_init__(self) -> None:
        check_fields(self)
        if self.mapping_seed is not None and not self.randomize_actions:
            raise ValueError("--mapping-seed needs --randomize-actions")


GAMES = tuple(
    """
    Adventure AirRaid Alien Amidar Assault Asterix Asteroids Atlantis Atlantis2 Backgammon BankHeist BasicMath
    BattleZone BeamRider Berzerk Blackjack Bowling Boxing Breakout Carnival Casino Centipede ChopperCommand
    CrazyClimber Crossbow Darkchambers Defender DemonAttack DonkeyKong DoubleDunk Earthworld ElevatorAction Enduro
    Entombed Et FishingDerby FlagCapture Freeway Frogger Frostbite Galaxian Gopher Gravitar Hangman HauntedHouse Hero
    HumanCannonball IceHockey Jamesbond JourneyEscape Kaboom Kangaroo KeystoneKapers KingKong Klax Koolaid Krull
    KungFuMaster LaserGates LostLuggage MarioBros MiniatureGolf MontezumaRevenge MrDo MsPacman NameThisGame Othello
    Pacman Phoenix Pitfall Pitfall2 Pong Pooyan PrivateEye Qbert Riverraid RoadRunner Robotank Seaquest SirLancelot
    Skiing Solaris SpaceInvaders SpaceWar StarGunner Superman Surround Tennis Tetris TicTacToe3D TimePilot Trondead
    Turmoil Tutankham UpNDown Venture VideoCheckers VideoChess VideoCube VideoPinball WizardOfWor WordZapper
    YarsRevenge Zaxxon
    """.split()  # noqa: SIM905 - a page of quotation marks otherwise
)
"""The single-player games that ALE registers as `ALE/<game>-v5`."""


@dataclass(frozen=True)
class AtariConfig(BaseEnvConfig):
    """An Atari game, how its screen and its episodes reach the agent, and when to stop."""

    kind: ClassVar[str] = "atari"
    budget: ClassVar[str] = "total_frames"
    required_field: ClassVar[str | None] = "game"
    minutes_between_checkpoints: ClassVar[float] = 10.0
    game: str = "Gravitar"
    """The game: "Private Eye", private_eye, PrivateEye and ALE/PrivateEye-v5 are the same one."""
    frame_skip: PositiveInt = 4
    """Frames of the emulator that one action lasts."""
    sticky: Annotated[float, Range(ge=0, lt=1)] = 0.0
    """Probability, at every frame, that the emulator repeats the action before (0.25 in Gymnasium's v5 ids)."""
    noop_max: NonNegativeInt = 30
    """An episode starts with 1 to this many frames of doing nothing (0: none)."""
    full_action_space: bool = False
    """Offer all 18 actions, also those that do nothing new in this game."""
    terminal_on_life_loss: bool = False
    """Losing a life ends the episode and the game, while training; evaluation always plays whole games."""
    max_episode_frames: int = 108_000
    """Cut an episode (truncated, not terminated) before it has more frames than this, the first no-ops included."""
    screen_size: Annotated[int, Range(ge=SMALLEST_SCREEN)] = 84
    """Width and height that the greyscale screen is scaled to."""
    frame_stack: Annotated[int, Range(ge=1, le=LARGEST_STACK)] = 4
    """Screens, one per step, in an observation; the first of an episode is repeated until there are enough."""
    max_over_frames: bool = True
    """Take the brighter pixel of an action's last two frames, since many games draw their objects in turns."""
    clip_rewards: bool = True
    """Learn from the sign of a reward only; the scores reported are never clipped."""
    total_frames: PositiveInt = 200_000_000
    """Stop after this many frames of the emulator."""
    eval_every_frames: PositiveInt | None = 1_000_000
    """Frames from one evaluation to the next (None: no evaluation)."""

    def __post_init__(self) -> None:
        check_fields(self)
        object.__setattr__(self, "game", canonical_game(self.game))
        shortest = self.noop_max + self.frame_skip
        if self.max_episode_frames < shortest:
            raise ValueError(
                f"--max-episode-frames must be at least {shortest}, the no-ops and one step, "
                f"got {self.max_episode_frames}"
            )

    @property
    def label(self) -> str:
        return self.game

    @property
    def frames_per_step(self) -> int:
        return self.frame_skip

    @property
    def cost_key(self) -> "AtariConfig":
        # one game stands for all
        return replace(self, game="Pong", total_frames=1, eval_every_frames=None)

    @property
    def max_episode_steps(self) -> int:
        return self.max_episode_frames // self.frame_skip

    @property
    def max_training_steps(self) -> int:
        return -(-self.total_frames // self.frame_skip)


def canonical_game(name: str) -> str:
    """Return a game's name as in `GAMES`, from any spelling of it or from its Gymnasium id.

    Raises:
        ValueError: There is no such game; the message suggests the closest one.
    """
    keys = {game.lower(): game for game in GAMES}
    key = _game_key(name.lower().removeprefix("ale/").removesuffix("-v5"))
    if key in keys:
        return keys[key]
    hint = did_you_mean(key, GAMES, "for example Gravitar or PrivateEye")
    raise ValueError(f"--game must be one of ALE's {len(GAMES)} Atari games, got {name!r}{hint}")


def _game_key(name: str) -> str:
    """Return the letters and digits of a game's name in lower case, the same for every spelling of it."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


MINATAR_GAMES = ("asterix", "breakout", "freeway", "seaquest", "space-invaders")


@dataclass(frozen=True)
class MinAtarConfig(StepBudget):
    """A MinAtar game, and when to stop."""

    kind: ClassVar[str] = "minatar"
    required_field: ClassVar[str | None] = "game"
    game: str = "breakout"
    """The game: asterix, breakout, freeway, seaquest or space-invaders."""
    sticky: Annotated[float, Range(ge=0, lt=1)] = 0.1
    """Probability, at every step, that the action before is repeated."""
    difficulty_ramping: bool = True
    """Let objects become faster and more frequent during an episode of asterix, seaquest and space-invaders."""
    full_action_space: bool = False
    """Offer all 6 actions, also those that do nothing in this game."""
    clip_rewards: bool = False
    """Learn from the sign of the rewards only."""
    total_steps: PositiveInt = 500_000
    """Stop after this many environment steps."""
    eval_every_steps: PositiveInt | None = 25_000
    """Environment steps from one evaluation to the next (None: no evaluation)."""

    def __post_init__(self) -> None:
        check_fields(self)
        key = _game_key(self.game.removeprefix("MinAtar/"))
        found = next((game for game in MINATAR_GAMES if _game_key(game) == key), None)
        if found is None:
            hint = did_you_mean(self.game, MINATAR_GAMES, "")
            raise ValueError(f"--game must be one of {', '.join(MINATAR_GAMES)}; got {self.game!r}{hint}")
        object.__setattr__(self, "game", found)

    @property
    def label(self) -> str:
        return self.game


MINIGRID_PREFIXES = ("MiniGrid-", "BabyAI-")
"""Beginnings of the ids that MiniGrid registers."""


def check_minigrid_id(env_id: Any) -> None:
    """Raise a ValueError if `env_id` is not one of MiniGrid's."""
    if not str(env_id).startswith(MINIGRID_PREFIXES):
        raise ValueError(
            f"--env-id must begin with {' or '.join(MINIGRID_PREFIXES)}, got {env_id!r}; for other environments use: "
            f"bootdqn train gym --env-id {env_id}"
        )


@dataclass(frozen=True)
class GymConfig(StepBudget):
    """Any Gymnasium environment with discrete actions, and when to stop."""

    kind: ClassVar[str] = "gym"
    required_field: ClassVar[str | None] = "env_id"
    env_id: str = "CartPole-v1"
    """The environment's registered name."""
    env_options: tuple[str, ...] = ()
    """Options of the environment, as in is_slippery=false map_name=8x8."""
    imports: Annotated[tuple[ModuleName, ...], Flag(name="import", repeated=True)] = ()
    """Import a module of your own that registers environments."""
    total_steps: PositiveInt = 100_000
    """Stop after this many environment steps."""
    eval_every_steps: PositiveInt | None = 10_000
    """Environment steps from one evaluation to the next (None: no evaluation)."""
    clip_rewards: bool = False
    """Learn from the sign of the rewards only."""

    def __post_init__(self) -> None:
        check_fields(self)
        self._check_imports()

    @property
    def options(self) -> dict[str, Any]:
        """Values of `env_options` by name."""
        options = {}
        for text in self.env_options:
            name, equals, value = text.partition("=")
            if not equals or not name.isidentifier():
                raise ValueError(f"--env-options must be name=value, as in is_slippery=false; got {text!r}")
            if name in options:
                raise ValueError(f"--env-options has {name} twice; leave one out")
            if name in ("render_mode", "id"):
                raise ValueError(f"--env-options cannot set {name}: the command sets it; leave it out")
            options[name] = parse_as(Any, value)
        return options

    def _check_imports(self) -> None:
        """Raise a ValueError where the run needs a module, or Gymnasium would import one, that no flag imported."""
        imported = imported_environments()
        if missing := [f"--import {module}" for module in self.imports if module not in imported]:
            raise UserCodeNotImportedError(*missing)
        for env_id in (self.env_id, self.options.get("env_id")):  # there are environments that wrap one of another name
            module, colon, name = str(env_id).partition(":")
            if colon and module not in imported:
                raise ValueError(f"--env-id {env_id} would import a module; write --import {module} --env-id {name}")

    @property
    def label(self) -> str:
        return " ".join([self.env_id, *self.env_options])


EnvConfig = DeepSeaConfig | AtariConfig | MinAtarConfig | GymConfig | BsuiteConfig
