"""The configuration of one run: the flags of every part, composed.

Field names are unique over all parts, so a configuration is also one flat mapping of settings (`config.settings`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Annotated, Any, Generic, Literal, TypeVar

from bootdqn.common.fields import Pattern, PositiveInt, Range, check_fields
from bootdqn.config.agent import ActorConfig, LearnerConfig, NetworkConfig, ReplayConfig
from bootdqn.config.bsuite import BsuiteConfig
from bootdqn.config.envs import DeepSeaConfig, EnvConfig, Seed
from bootdqn.exploration.voting import VoteRule

EnvT = TypeVar("EnvT", bound=EnvConfig)
Preset = Literal["paper", "explorer"]


@dataclass(frozen=True)
class RunConfig:
    """Preset, seed, device and metrics."""

    preset: Preset = "paper"
    """Where settings that are not given come from: the paper (our own choices where it has none), or what explored
    furthest in our experiments (explorer, docs/presets.md)."""
    seed: Seed = 0
    """Seed of every random stream of the run."""
    device: Annotated[str, Pattern(r"cpu|cuda(:\d+)?", "cpu, cuda or cuda:INDEX")] = "cpu"
    """Device of the networks: cpu, cuda, cuda:1, ..."""
    num_envs: PositiveInt = 1
    """Environments played side by side, each with its own active head; the updates count all their steps."""
    threads: Annotated[int, Range(ge=1, le=1024)] = 1
    """Threads of PyTorch and BLAS; part of the configuration because they change the rounding."""
    log_every: PositiveInt = 1000
    """Updates from one `update` metric to the next; the first come earlier, after 10, 20, ..., 100, 200, ..."""
    snapshot_every: PositiveInt | Literal["log"] | None = None
    """Save a snapshot of the networks every so many steps, or after 100, 200, 400, 800, ... (log), to inspect later."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class EvaluationConfig:
    """Evaluation by the vote of the heads, on an environment of its own; the environment's flags set how often."""

    eval_episodes: PositiveInt = 10
    """Maximum number of episodes of an evaluation."""
    eval_max_steps: PositiveInt = 500_000
    """Maximum number of steps of an evaluation."""
    vote: VoteRule = "plurality"
    """Voting rule of the heads."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class SavingConfig:
    """When to save checkpoints. Not part of a run's configuration: it changes no number."""

    checkpoint_every_minutes: Annotated[float, Range(gt=0)] | None = None
    """Minutes from one checkpoint to the next (None: 1 on DeepSea and bsuite, 10 on Atari, 2 elsewhere)."""
    checkpoint_every_steps: PositiveInt | None = None
    """Also one after every so many environment steps, of all environments together."""
    keep_checkpoint: bool | None = None
    """Keep the last checkpoint of a finished run, so that resume --budget, or a sweep, can train it for longer; stored
    with the run (None: unchanged on resume, false for a new run)."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True)
class LoggerConfig:
    """Loggers besides metrics.jsonl. Not part of a run's configuration: they change no number."""

    tensorboard: bool = False
    """Also write TensorBoard's event files into the run directory (extra: tensorboard)."""
    wandb: bool = False
    """Also log to Weights & Biases, the runs of a sweep as a group (extra: wandb; WANDB_MODE=offline keeps it on this
    machine)."""


@dataclass(frozen=True)
class TrainConfig(Generic[EnvT]):
    """Everything that the numbers of a run depend on."""

    env: EnvT
    actor: ActorConfig = field(default_factory=ActorConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    run: RunConfig = field(default_factory=RunConfig)

    def __post_init__(self) -> None:
        for name in ("update_every", "target_every"):
            if getattr(self.learner, name) is None and self.env.default_update_every is None:
                flag = f"--{name.replace('_', '-')}"
                raise ValueError(f"{flag} must be a number of steps, got None; only DeepSea derives it from --size")
        capacity, fewest = self.replay.replay_capacity, self.run.num_envs * (self.env.frame_stack + 1)
        if capacity < fewest:
            raise ValueError(
                f"--replay-capacity must be at least {fewest} for --num-envs {self.run.num_envs}, got {capacity}"
            )
        longest = capacity // self.run.num_envs
        if self.learner.n_step > longest:
            raise ValueError(
                f"--n-step must be at most {longest}, the transitions of --replay-capacity {capacity} for each of "
                f"--num-envs {self.run.num_envs}, got {self.learner.n_step}"
            )


def resolve(config: TrainConfig[EnvT]) -> TrainConfig[EnvT]:
    """Return `config` with every value that depends on another one filled in."""
    env, learner = config.env, config.learner
    learner = replace(
        learner,
        update_every=learner.update_every or env.default_update_every,
        target_every=learner.target_every or env.default_update_every,
    )
    if isinstance(env, DeepSeaConfig) and env.mapping_seed is None and env.randomize_actions:
        env = replace(env, mapping_seed=config.run.seed)
    if isinstance(env, BsuiteConfig) and env.max_episodes is None:
        env = replace(env, max_episodes=env.default_max_episodes)
    return replace(config, env=env, learner=learner)


def budget_warnings(config: TrainConfig[Any]) -> list[str]:
    """Return a warning if a run of the resolved `config` ends before its first update or its first evaluation."""
    steps, starts = config.env.max_training_steps, config.learner.learning_starts
    budget = f"the run ends after at most {steps:,} steps"
    warnings = []
    if steps < starts:
        warnings.append(
            f"nothing will be learned: {budget}, and the first update is due after --learning-starts {starts:,}"
        )
    every, frames = config.env.eval_every_frames, steps * config.env.frames_per_step
    if every is not None and frames < every:
        unit = "frames" if config.env.budget == "total_frames" else "steps"
        warnings.append(
            f"the agent will not be evaluated: the run ends after at most {frames:,} {unit}, "
            f"and that is due every --eval-every-{unit} {every:,}"
        )
    return warnings


def config_parts(config: TrainConfig[Any]) -> dict[str, Any]:
    """Return the parts of a configuration by name: dataclasses whose fields are the settings."""
    parts = {part.name: getattr(config, part.name) for part in fields(config)}
    return {name: part for name, part in parts.items() if is_dataclass(part)}


def replace_known(part: Any, settings: Mapping[str, Any]) -> Any:
    """Return a part of the configuration with those of the settings that are its fields."""
    names = [field.name for field in fields(part) if field.name in settings]
    return replace(part, **{name: settings[name] for name in names})
