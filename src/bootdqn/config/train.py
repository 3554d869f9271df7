"""The configuration of one run: every part's flags composed, with the paper's values as defaults.

Field names are unique over all parts, so a configuration is also one flat mapping: that is `config.json`, its keys are
the flags of the command line, and a sweep varies them.
"""

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Annotated, Any, Generic, Literal, TypeVar, get_type_hints

from bootdqn.common.fields import Pattern, PositiveInt, Range, check_fields, flag_of, format_literal
from bootdqn.common.text import did_you_mean
from bootdqn.common.user_code import UserCodeNotImportedError
from bootdqn.config.agent import ActorConfig, LearnerConfig, NetworkConfig, ReplayConfig
from bootdqn.config.bsuite import BsuiteConfig
from bootdqn.config.envs import (
    AtariConfig,
    DeepSeaConfig,
    EnvConfig,
    GymConfig,
    MinAtarConfig,
    Seed,
    check_minigrid_id,
)
from bootdqn.config.presets import Preset, preset_settings
from bootdqn.exploration.voting import VoteRule

EnvT = TypeVar("EnvT", bound=EnvConfig)


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


DEEP_SEA = TrainConfig(env=DeepSeaConfig(), actor=ActorConfig(strategy="evoi:reduce=sum"))
"""The paper's DeepSea experiment (Appendix A); EVOI is the sum over heads there."""

ATARI = TrainConfig(
    env=AtariConfig(),
    actor=ActorConfig(strategy="evoi"),
    network=NetworkConfig(num_heads=10, ensemble="shared", hidden_sizes=(512,)),
    learner=LearnerConfig(
        batch_size=32,
        learning_rate=1e-4,
        loss="huber",
        learning_starts=50_000,
        update_every=4,
        target_every=10_000,
    ),
    replay=ReplayConfig(replay_capacity=1_000_000, mask_probability=1.0),
    run=RunConfig(threads=2),
)
"""The paper's Atari experiments (Section IV)."""

MINATAR = TrainConfig(
    env=MinAtarConfig(),
    actor=ATARI.actor,
    network=replace(ATARI.network, hidden_sizes=(128,)),
    learner=replace(ATARI.learner, learning_rate=1e-3, learning_starts=5_000, target_every=1_000),
    replay=replace(ATARI.replay, replay_capacity=100_000),
    evaluation=EvaluationConfig(eval_max_steps=50_000),
)
"""The paper's Atari experiments, scaled to MinAtar; ours, the paper has none."""

GYM = TrainConfig(
    env=GymConfig(),
    actor=ActorConfig(strategy="evoi", before_learning="uniform"),
    network=NetworkConfig(num_heads=10, ensemble="auto", hidden_sizes=(64, 64)),
    learner=LearnerConfig(
        batch_size=64, learning_rate=1e-3, loss="huber", learning_starts=1000, update_every=1, target_every=250
    ),
    replay=ReplayConfig(replay_capacity=100_000, mask_probability=0.5),
)
"""Settings for small tasks; ours, the paper has none.

Where rewards are sparse, heads that all learn from the same few thousand silent steps agree before they have seen one:
half the data each, and a uniform start, keep them apart.
"""

MINIGRID = TrainConfig(
    env=GymConfig(env_id="MiniGrid-DoorKey-5x5-v0"),
    actor=ActorConfig(
        strategy="greedy", before_learning="uniform", epsilon=1.0, epsilon_end=0.05, epsilon_steps=25_000
    ),
    network=NetworkConfig(num_heads=10, ensemble="auto", hidden_sizes=(128, 64)),
    learner=LearnerConfig(
        batch_size=64,
        learning_rate=5e-4,
        loss="huber",
        n_step=5,
        learning_starts=1_000,
        update_every=4,
        target_every=500,
    ),
    replay=ReplayConfig(replay_capacity=100_000, mask_probability=1.0, replay="prioritized"),
)
"""Settings for MiniGrid, environments of kind `gym`; ours, the paper has none. `docs/minigrid.md` has their search.

Rewards are rare: a random agent solves DoorKey-5x5 in 8 % of its episodes. An epsilon that decreases finds some
while the heads already learn, prioritized replay and five-step targets carry them back along their episodes.
"""

BSUITE = TrainConfig(
    env=BsuiteConfig(),
    actor=ActorConfig(strategy="evoi:reduce=sum"),
    learner=LearnerConfig(update_every=1, target_every=4),
)
"""The paper's DeepSea settings, with the target copy every 4 steps of bsuite's own Bootstrapped DQN.

bsuite scores one agent on all of its experiments, so they have the same settings.
"""

_VERSION = re.compile(r"-v\d+$")
"""Version of a Gymnasium id."""
_RESULT_NEUTRAL_SETTINGS = frozenset({"snapshot_every", "preset"})
"""Settings that the numbers of a run do not depend on."""
_DERIVED = frozenset({"update_every", "target_every", "mapping_seed", "max_episodes"})
"""Settings that `resolve` fills in where they are None."""
BUDGET_SYNONYMS = (
    *("max_episodes", "total_steps", "total_frames"),
    *("episodes", "steps", "timesteps", "total_timesteps", "frames"),
)
"""Names of a budget; each environment has one of the first three."""
_SYNONYMS = {
    **dict.fromkeys(("heads", "k", "n_heads", "ensemble_size"), "num_heads"),
    **dict.fromkeys(("lr", "step_size"), "learning_rate"),
    **dict.fromkeys(("buffer_size", "replay_size", "memory_size"), "replay_capacity"),
    "gamma": "discount",
    "tau": "target_rate",
    "n": "size",
    "num_seeds": "seed",
}
"""Settings by the names that papers and other libraries have for them, in lower case."""
DEFAULTS: dict[str, TrainConfig[Any]] = {config.env.kind: config for config in (DEEP_SEA, ATARI, MINATAR, GYM, BSUITE)}
ENVIRONMENTS = DEFAULTS | {"minigrid": MINIGRID}
"""Default settings by what `environment` may be: a kind, or `minigrid` for one of kind `gym`."""


def default_settings() -> dict[str, dict[str, Any]]:
    """Return the default settings of each environment by its kind, as flat mappings; reports compare runs with them."""
    return {kind: to_flat(config) for kind, config in DEFAULTS.items()}


def with_preset(config: TrainConfig[EnvT], preset: Any) -> TrainConfig[EnvT]:
    """Return `config` with the settings of a preset for its environment.

    Raises:
        ValueError: There is no such preset.
    """
    run = replace(config.run, preset=preset)
    changes = preset_settings(preset, config.env.kind)
    parts = {name: _replace_known(part, changes) for name, part in _parts(replace(config, run=run)).items()}
    return replace(config, **parts)


def describe_settings(config: TrainConfig[Any]) -> str:
    """Return the preset of a run with what it sets, and the settings that differ from it, as one line."""
    preset, kind = config.run.preset, config.env.kind
    unchanged = with_preset(DEFAULTS[kind], preset)
    flat, default = to_flat(resolve(config)), to_flat(unchanged)
    task: dict[str, Any] = {name: flat[name] for name in ("size", "bsuite_id", "seed") if name in flat}
    parts = {name: _replace_known(part, task) for name, part in _parts(unchanged).items()}
    resolved = to_flat(resolve(replace(unchanged, **parts)))  # with the defaults that depend on the task
    different = {
        name: value
        for name, value in flat.items()
        if value != default[name] and (name in task or value != resolved[name])
    }
    of_preset = _listed({name: flat[name] for name in preset_settings(preset, kind) if name not in different})
    text = f"preset {preset} ({of_preset})" if of_preset else f"preset {preset}"
    return f"{text} with {_listed(different)}" if different else text


def _listed(settings: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())


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


def with_changes(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return flat settings with changes.

    In a complete configuration, as in `config.json`, what `resolve` filled in follows the changes: with another seed
    DeepSea has that seed's map of actions. A mapping of a few settings is taken as it is written.

    Raises:
        ValueError: The preset of a complete configuration is changed, whose settings would stay as they are.
    """
    if not _is_complete(settings):
        return {**settings, **changes}
    if changes.get("preset", settings["preset"]) != settings["preset"]:
        raise ValueError(
            f"preset {changes['preset']!r} sets nothing in a complete configuration: name the environment and what "
            f"differs, as in bootdqn.train({settings['environment']!r}, preset={changes['preset']!r}, ...)"
        )
    chosen = {name: value for name, value in settings.items() if name not in _DERIVED}
    unresolved, resolved = to_flat(from_flat(chosen)), to_flat(resolve(from_flat(chosen)))
    derived = (_DERIVED & settings.keys()) - {name for name, value in unresolved.items() if value is not None}
    followed = {name for name in derived if resolved[name] == settings[name]}
    return {name: value for name, value in settings.items() if name not in followed} | dict(changes)


def _is_complete(settings: Mapping[str, Any]) -> bool:
    """Return whether every setting of the environment is there."""
    environment = settings.get("environment")
    return environment in DEFAULTS and to_flat(DEFAULTS[environment]).keys() <= settings.keys()


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


def to_flat(config: TrainConfig[Any]) -> dict[str, Any]:
    """Return the configuration as one mapping, ready for JSON."""
    flat: dict[str, Any] = {"environment": config.env.kind}
    for part in _parts(config).values():
        for part_field in fields(part):
            value = getattr(part, part_field.name)
            flat[part_field.name] = list(value) if isinstance(value, tuple) else value
    return flat


def from_flat(flat: Mapping[str, Any]) -> TrainConfig[Any]:
    """Return the configuration that `flat` describes; settings that it leaves out have the environment's defaults.

    Raises:
        ValueError: An unknown setting (the message suggests the closest), or a value that its field does not take.
        UserCodeNotImportedError: It needs user code; the message lists all flags that import it.
    """
    default = with_preset(ENVIRONMENTS[_environment_of(flat)], flat.get("preset", "paper"))
    remaining = {key: value for key, value in flat.items() if key != "environment"}
    if isinstance(options := remaining.get("env_options"), Mapping):
        remaining["env_options"] = [f"{name}={format_literal(value)}" for name, value in options.items()]
    parts, missing = {}, list[str]()
    for part_name, part in _parts(default).items():
        try:
            parts[part_name] = _replace_known(part, remaining)
        except UserCodeNotImportedError as error:
            missing += error.flags
    known = [part_field.name for part in _parts(default).values() for part_field in fields(part)]
    remaining = {name: value for name, value in remaining.items() if name not in known}
    if missing:
        raise UserCodeNotImportedError(*missing)
    if remaining:
        unknown = next(iter(remaining))
        meant = setting_synonyms(default.env.kind).get(str(unknown).lower())
        hint = f"; did you mean {meant!r}?" if meant else did_you_mean(str(unknown), known)
        raise ValueError(f"unknown setting {unknown!r}{hint}")
    return replace(default, **parts)


def setting_types(environment: Any) -> dict[str, Any]:
    """Return the annotated type of every setting of an environment; none where there is no such environment."""
    parts = _parts(ENVIRONMENTS[environment]).values() if environment in ENVIRONMENTS else ()
    hints = {type(part): get_type_hints(type(part), include_extras=True) for part in parts}
    return {one.name: found[one.name] for part, found in hints.items() for one in fields(part)}


def setting_synonyms(environment: str) -> dict[str, str]:
    """Return settings of an environment's kind by names that they do not have, in lower case, to suggest the settings.

    The names are those of flags (`id` of `bsuite_id`), of other environments, of papers and of other libraries.

    Example:
        >>> [setting_synonyms("gym")[name] for name in ("lr", "steps", "env")]
        ['learning_rate', 'total_steps', 'env_id']
    """
    types, env = setting_types(environment), ENVIRONMENTS[environment].env
    tasks = dict.fromkeys(("env", "env_id", "env_name", "game"), env.required_field)
    by_flag = {flag_of(kind).name: name for name, kind in types.items()}
    found = _SYNONYMS | dict.fromkeys(BUDGET_SYNONYMS, env.budget) | tasks | by_flag
    return {word: name for word, name in found.items() if word and name in types and word not in types}


def _environment_of(flat: Mapping[str, Any]) -> str:
    """Return the environment that the settings are for, one of `ENVIRONMENTS`.

    Raises:
        ValueError: It is missing or unknown, or the settings do not choose a task of it.
    """
    name = flat.get("environment")
    if name is None:
        close = difflib.get_close_matches("environment", map(str, flat), n=1)
        hint = f"; {close[0]!r} is no setting" if close else ""
        raise ValueError(f"environment is missing: one of {', '.join(ENVIRONMENTS)}{hint}")
    if not isinstance(name, str) or name not in ENVIRONMENTS:
        raise ValueError(f"environment must be one of {', '.join(ENVIRONMENTS)}; got {name!r}")
    env = ENVIRONMENTS[name].env
    if env.required_field and env.required_field not in flat:
        example = getattr(env, env.required_field)
        raise ValueError(f"the environment {name} needs {env.required_field}, as in {env.required_field} = {example!r}")
    if name == "minigrid":
        check_minigrid_id(flat["env_id"])
    return name


def differences(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the settings that differ between two flat configurations, with both values.

    A setting that one of them lacks, because an earlier version wrote it, has its default there. Settings that change
    no number are ignored. An `env_id` without version, as sweep files may have it, stands for any.
    """
    one, other = _completed(one), _completed(other)
    keys = sorted({*one, *other} - _RESULT_NEUTRAL_SETTINGS)
    different = {key: (one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key)}
    if "env_id" in different and _same_environment(*different["env_id"]):
        del different["env_id"]
    return different


def _same_environment(one: Any, other: Any) -> bool:
    """Return whether two ids are those of one environment, where one of them has no version."""
    names = [_VERSION.sub("", str(env_id)) for env_id in (one, other)]
    return names[0] == names[1] in (one, other)


def budget_change(there: Mapping[str, Any], here: Mapping[str, Any]) -> tuple[str, int, int] | None:
    """Return the name and both values of the budget (episodes, frames or steps) if two runs differ in it alone.

    A run does not depend on its budget before it ends, so one with a smaller budget is the beginning of one with a
    larger budget.
    """
    different = differences(there, here)
    if len(different) != 1 or there.get("environment") not in DEFAULTS:
        return None
    budget = DEFAULTS[there["environment"]].env.budget
    before, after = different.get(budget, (None, None))
    return (budget, before, after) if type(before) is type(after) is int else None


def _completed(flat: Mapping[str, Any]) -> dict[str, Any]:
    kind = flat.get("environment")
    return (to_flat(DEFAULTS[kind]) if kind in DEFAULTS else {}) | dict(flat)


def _replace_known(part: Any, settings: Mapping[str, Any]) -> Any:
    """Return a part of the configuration with those of the settings that are its fields."""
    return replace(part, **{one.name: settings[one.name] for one in fields(part) if one.name in settings})


def _parts(config: TrainConfig[Any]) -> dict[str, Any]:
    return {f.name: getattr(config, f.name) for f in fields(config) if is_dataclass(getattr(config, f.name))}
