"""The flags of the Atari games, and the games there are: nothing here needs the emulator to be installed."""

import re
from dataclasses import dataclass, replace
from typing import ClassVar

from bootdqn.common.specs import LARGEST_STACK, SMALLEST_SCREEN
from bootdqn.common.written import did_you_mean

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
class AtariConfig:
    """An Atari game, how its screen and its episodes reach the agent, and when to stop."""

    kind: ClassVar[str] = "atari"
    budget: ClassVar[str] = "total_frames"
    must_be_said: ClassVar[str | None] = "game"
    minutes_between_checkpoints: ClassVar[float] = 10.0
    default_target_every: ClassVar[None] = None
    game: str = "Gravitar"
    """The game: "Private Eye", private_eye, PrivateEye and ALE/PrivateEye-v5 are the same one."""
    frame_skip: int = 4
    """Frames of the emulator that one action lasts."""
    sticky: float = 0.0
    """Probability, at every frame, that the emulator repeats the action before (0.25 in Gymnasium's v5 ids)."""
    noop_max: int = 30
    """An episode begins with 1 to this many frames of doing nothing (0: none)."""
    full_action_space: bool = False
    """Offer all 18 actions, also those that do nothing new in this game."""
    terminal_on_life_loss: bool = False
    """Losing a life ends the episode and the game, while training; evaluation always plays whole games."""
    max_episode_frames: int = 108_000
    """Cut an episode (truncated, not terminated) before it has more frames than this, the first no-ops included."""
    screen_size: int = 84
    """Width and height that the greyscale screen is scaled to."""
    frame_stack: int = 4
    """How many screens, one a step, an observation holds; the first of an episode fills the gap at its beginning."""
    max_over_frames: bool = True
    """Take the brighter pixel of an action's last two frames, since many games draw their objects in turns."""
    clip_rewards: bool = True
    """Learn from the sign of a reward only; the scores reported are never clipped."""
    total_frames: int = 200_000_000
    """Stop after this many frames of the emulator."""
    eval_every_frames: int | None = 1_000_000
    """Frames from one evaluation to the next (None: no evaluation)."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "game", canonical_game(self.game))
        if not 0 <= self.sticky < 1:
            raise ValueError(f"--sticky must be in [0, 1), got {self.sticky}")
        if self.noop_max < 0:
            raise ValueError(f"--noop-max must be at least 0, got {self.noop_max}")
        for field in ("frame_skip", "screen_size", "total_frames", "eval_every_frames"):
            if getattr(self, field) is not None and getattr(self, field) < 1:
                raise ValueError(f"--{field.replace('_', '-')} must be at least 1, got {getattr(self, field)}")
        if self.screen_size < SMALLEST_SCREEN:
            raise ValueError(f"--screen-size must be at least {SMALLEST_SCREEN}, got {self.screen_size}")
        if not 1 <= self.frame_stack <= LARGEST_STACK:
            raise ValueError(f"--frame-stack must be in 1..{LARGEST_STACK}, got {self.frame_stack}")
        shortest = self.noop_max + self.frame_skip
        if self.max_episode_frames < shortest:
            raise ValueError(
                f"--max-episode-frames must be at least {shortest}, the no-ops and one step, "
                f"got {self.max_episode_frames}"
            )

    @property
    def label(self) -> str:
        """A short name of this environment, for the names of runs."""
        return self.game

    @property
    def frames_per_step(self) -> int:
        """How many frames a step counts for."""
        return self.frame_skip

    @property
    def costs_like(self) -> "AtariConfig":
        """What the cost of a step depends on; one game stands for all."""
        return replace(self, game="Pong", total_frames=1, eval_every_frames=None)

    @property
    def longest_episode(self) -> int:
        """The most steps of an episode."""
        return self.max_episode_frames // self.frame_skip

    @property
    def longest_steps(self) -> int:
        """The most steps that training takes; the last may go beyond its frames."""
        return -(-self.total_frames // self.frame_skip)


def canonical_game(name: str) -> str:
    """Return the game's name as in `GAMES`, from any spelling of it or from its Gymnasium id.

    Raises:
        ValueError: There is no such game; the message names the closest one.
    """
    keys = {game.lower(): game for game in GAMES}
    key = re.sub(r"[^a-z0-9]", "", name.lower().removeprefix("ale/").removesuffix("-v5"))
    if key in keys:
        return keys[key]
    hint = did_you_mean(key, GAMES, "for example Gravitar or PrivateEye")
    raise ValueError(f"--game must be one of ALE's {len(GAMES)} Atari games, got {name!r}{hint}")
