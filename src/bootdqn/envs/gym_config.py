"""The flags of an environment from Gymnasium's registry."""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from bootdqn.common.flags import Flag
from bootdqn.common.own_code import CodeNotImportedError, imported_environments, is_module_name
from bootdqn.common.written import read_value


@dataclass(frozen=True)
class GymConfig:
    """Any Gymnasium environment with discrete actions, and when to stop."""

    kind: ClassVar[str] = "gym"
    budget: ClassVar[str] = "total_steps"
    must_be_said: ClassVar[str | None] = "env_id"
    minutes_between_checkpoints: ClassVar[float] = 2.0
    frames_per_step: ClassVar[int] = 1
    frame_stack: ClassVar[int] = 1
    default_target_every: ClassVar[None] = None
    longest_episode: ClassVar[None] = None
    """Nobody knows how long an episode may be."""
    env_id: str = "CartPole-v1"
    """The environment's registered name."""
    env_options: tuple[str, ...] = ()
    """Options of the environment, as in is_slippery=false map_name=8x8."""
    imports: Annotated[tuple[str, ...], Flag(name="import", repeated=True)] = ()
    """Import a module of your own that registers environments."""
    total_steps: int = 100_000
    """Stop after this many environment steps."""
    eval_every_steps: int | None = 10_000
    """Environment steps from one evaluation to the next (None: no evaluation)."""
    clip_rewards: bool = False
    """Learn from the sign of the rewards only."""

    def __post_init__(self) -> None:
        self._refuse_what_was_not_imported()
        _ = self.options
        for field in ("total_steps", "eval_every_steps"):
            if getattr(self, field) is not None and getattr(self, field) < 1:
                raise ValueError(f"--{field.replace('_', '-')} must be at least 1, got {getattr(self, field)}")

    @property
    def options(self) -> dict[str, Any]:
        """What `env_options` says, by name."""
        options = {}
        for text in self.env_options:
            name, equals, value = text.partition("=")
            if not equals or not name.isidentifier():
                raise ValueError(f"write --env-options as name=value, as in is_slippery=false; got {text!r}")
            if name in options:
                raise ValueError(f"--env-options has {name} twice")
            if name in ("render_mode", "id"):
                raise ValueError(f"--env-options cannot set {name}; it is chosen by the command")
            options[name] = read_value(value)
        return options

    def _refuse_what_was_not_imported(self) -> None:
        """Raise a ValueError where Gymnasium would import a module, or this run needs one, that no flag asked for."""
        for module in self.imports:
            if not is_module_name(module):
                raise ValueError(f"--import must be the name of a module, as in my_environments; got {module!r}")
        known = imported_environments()
        if missing := [f"--import {module}" for module in self.imports if module not in known]:
            raise CodeNotImportedError(*missing)
        for env_id in (self.env_id, self.options.get("env_id")):  # there are environments that wrap one of another name
            module, colon, name = str(env_id).partition(":")
            if colon and module not in known:
                raise ValueError(f"--env-id {env_id} would import a module; write --import {module} --env-id {name}")

    @property
    def label(self) -> str:
        """A short name of this environment, for the names of runs."""
        return " ".join([self.env_id, *self.env_options])

    @property
    def total_frames(self) -> int:
        """The steps, since every step is a frame here."""
        return self.total_steps

    @property
    def eval_every_frames(self) -> int | None:
        """The steps from one evaluation to the next, since every step is a frame here."""
        return self.eval_every_steps

    @property
    def costs_like(self) -> str:
        """What the cost of a step depends on."""
        return self.label

    @property
    def longest_steps(self) -> int:
        """The most steps that training takes."""
        return self.total_steps
