"""Sweep definitions: a base configuration, axes along which it varies, and variants that are not a full grid.

The seed is the outermost axis: a sweep that is stopped early has the same seeds in every cell.
"""

import itertools
import json
import math
import os
import re
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from bootdqn.common.errors import UsageError
from bootdqn.common.fields import item_kind, parse_as
from bootdqn.common.files import read_regular
from bootdqn.common.text import did_you_mean
from bootdqn.config.settings import from_flat, setting_types, to_flat
from bootdqn.config.train import TrainConfig, resolve

BUILT_IN = Path(__file__).with_name("definitions")
SMOKE = "-smoke"
MAX_FILE_BYTES = 2**20
MAX_RUNS = 1_000_000
_YAML = (".yaml", ".yml")
_TASKS = ("game", "env_id", "bsuite_id")
_UNPREFIXED = ("strategy", *_TASKS)
"""Settings whose value stands alone in the name of a directory."""
_DIRECTORY = re.compile(r"[a-z0-9-][a-z0-9.-]{0,199}")
"""Valid names of the directories of a planned run."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a sweep, in the run directory `name` below the sweep's directory."""

    name: PurePosixPath
    config: TrainConfig[Any]

    def __post_init__(self) -> None:
        """Raise a UsageError for a name that is not below the sweep's directory, or not valid on every file system."""
        bad = next((part for part in self.name.parts if not _DIRECTORY.fullmatch(part)), None)
        if bad is not None:
            raise UsageError(
                f"run {str(self.name)!r}: {bad!r} cannot be the name of its directory, which has up to 200 letters, "
                "digits, dots and dashes, and no dot first; give the environment another id, or change the axis"
            )


@dataclass(frozen=True)
class Sweep:
    """Every combination of the values of the axes with each variant, on top of the base.

    A setting of a variant replaces that of the base, and the axis of the same name.
    """

    name: str
    description: str
    base: Mapping[str, Any]
    axes: Mapping[str, Sequence[Any]]
    variants: Sequence[Mapping[str, Any]] = ({},)

    @property
    def _prefix(self) -> str:
        """Beginning of the errors in its definition; empty where the flags of a command define it."""
        return f"sweep {self.name}: " if self.name else ""

    def runs(self, imports: Sequence[str] = ()) -> list[PlannedRun]:
        """Return the runs, seeds outermost; runs that are given twice are listed once.

        Args:
            imports: The modules imported to register Gymnasium environments.

        Raises:
            UsageError: A setting does not exist, or a value is not valid.
        """
        number = math.prod(map(len, self.axes.values())) * len(self.variants)
        if number > MAX_RUNS:
            raise UsageError(f"{self._prefix}{number:,} runs, more than {MAX_RUNS:,}; shorten its axes")
        keys = sorted(self.axes, key=lambda key: key != "seed")
        runs: dict[PurePosixPath, PlannedRun] = {}
        for values in itertools.product(*(self.axes[key] for key in keys)):
            settings = dict(self.base) | dict(zip(keys, values, strict=True))
            if settings.get("environment") == "gym":
                settings.setdefault("imports", list(imports))
            for variant in self.variants:
                planned = self._planned(settings, variant)
                if runs.setdefault(planned.name, planned) != planned:
                    raise UsageError(f"{self._prefix}two different runs would share the run directory {planned.name}")
        return list(runs.values())

    def _planned(self, settings: Mapping[str, Any], variant: Mapping[str, Any]) -> PlannedRun:
        """Return the run of a variant at a point on the axes, named by its differences from the plain run there."""
        plain = dict(settings) | {key: value for key, value in variant.items() if key in (*self.axes, *_TASKS)}
        try:
            config = resolve(from_flat(plain | dict(variant)))
        except ValueError as error:
            raise UsageError(f"{self._prefix}{error}") from error
        flat = to_flat(config)
        always = [key for key in _UNPREFIXED if any(key in one for one in self.variants)]
        varied = dict.fromkeys(key for one in self.variants for key in one)
        changed = [key for key in varied if key in variant and key not in always and flat[key] != _value_in(plain, key)]
        named = dict.fromkeys([*self.axes, *always, *changed])
        return PlannedRun(_run_path(flat, [key for key in named if key != "seed"]), config)

    def with_overrides(self, overrides: Sequence[str]) -> "Sweep":
        """Return the sweep with settings changed by `key=value`; a list of values makes an axis.

        An override replaces the setting in the base, the axes and every variant; equal variants are run once.

        A value is written as on the command line, a list as in TOML. Where the setting is a list itself, only a list of
        lists makes an axis.

        Example: `["total_frames=10M", "seed=[0, 1]", "strategy=evoi"]`.
        """
        base, axes, variants = dict(self.base), dict(self.axes), [dict(variant) for variant in self.variants]
        kinds = setting_types(base.get("environment"))
        for override in overrides:
            key, equals, text = override.partition("=")
            if not equals or not key:
                raise UsageError(f"{override!r} is not of the form key=value, as in total_frames=1000000")
            kind = kinds.get(key, Any)
            value = _parse_override(kind, text)
            if isinstance(value, str) and _looks_like_a_list(kind, value):
                if re.fullmatch(r"\d{1,3}(,\d{3})+", value):
                    raise UsageError(f"{override}: write the number without commas, {key}={value.replace(',', '')}")
                raise UsageError(f"{override} is not a list; {_suggested_list(key, kind, value)}")
            for variant in variants:
                variant.pop(key, None)
            if key in axes or _is_axis(kind, value):
                axes[key] = value if _is_axis(kind, value) else [value]
                base.pop(key, None)
            else:
                base[key] = value
        return _checked(replace(self, base=base, axes=axes, variants=variants))


def split_values(text: str) -> list[str]:
    """Return the values that commas separate, where those between parameters of a strategy do not.

    Example:
        >>> split_values("greedy,evoi:reduce=sum,scale=2,gain")
        ['greedy', 'evoi:reduce=sum,scale=2', 'gain']
    """
    return re.split(r",(?!\w+=)", text)


def sweep_names() -> list[str]:
    """Return the names of the sweeps that come with the package."""
    names = sorted(path.stem for path in BUILT_IN.glob("*.toml"))
    return [name for stem in names for name in (stem, stem + SMOKE)]


def load_sweep(name: str) -> Sweep:
    """Return a sweep by its name, if it comes with the package, or from a TOML file.

    Raises:
        UsageError: There is no such sweep, or the file is not a valid definition.
    """
    path = Path(name)
    if path.suffix in (".toml", *_YAML):
        return _from_content(path.stem, read_definition(path), smoke=False)
    if name not in sweep_names():
        hint = did_you_mean(name, sweep_names(), f"choose from {', '.join(sweep_names())}, or a .toml file")
        raise UsageError(f"there is no sweep {name!r}{hint}")
    content = read_definition(BUILT_IN / f"{name.removesuffix(SMOKE)}.toml")
    return _from_content(name, content, smoke=name.endswith(SMOKE))


def deep_sea_sweep(strategies: Sequence[str], sizes: Sequence[int], num_seeds: int, max_episodes: int) -> Sweep:
    """Return a sweep over strategies and sizes of DeepSea, with the same seeds in each cell."""
    base = {"environment": "deep-sea", "max_episodes": max_episodes, "snapshot_every": "log"}
    axes: dict[str, list[Any]] = {"seed": list(range(num_seeds)), "size": list(sizes), "strategy": list(strategies)}
    return Sweep("", "", base, axes)


def read_definition(path: Path) -> dict[str, Any]:
    """Return the content of a TOML file of settings; raise a UsageError if it cannot be read."""
    if path.suffix in _YAML:
        raise UsageError(f"{path}: files of settings are TOML; write {path.stem}.toml, as in docs/experiments.md")
    try:
        return tomllib.loads(read_regular(Path(os.path.realpath(path)), MAX_FILE_BYTES).decode())  # links are followed
    except UsageError:
        raise
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # lists within lists, thousands of times
        raise UsageError(f"{path}: {' '.join(str(error).split())}") from error


def _from_content(name: str, content: dict[str, Any], *, smoke: bool) -> Sweep:
    known = ("description", "base", "axes", "variants", "smoke")
    if not isinstance(content.get("base"), dict):
        raise UsageError(f"sweep {name}: expected tables [base] and [axes]; see docs/experiments.md for an example")
    for key in content:
        if key not in known:
            raise UsageError(f"sweep {name}: unknown key {key!r}{did_you_mean(str(key), known)}")
    base, axes, variants = content["base"], content.get("axes", {}), content.get("variants", [{}])
    description = str(content.get("description", ""))
    if smoke:
        description = content["smoke"]["description"]
        base, axes = base | content["smoke"].get("base", {}), axes | content["smoke"].get("axes", {})
        variants = content["smoke"].get("variants", variants)
    return _checked(Sweep(name, description, base, axes, variants))


def _checked(sweep: Sweep) -> Sweep:
    if not isinstance(sweep.axes, dict):
        raise UsageError(f"sweep {sweep.name}: [axes] must be a table of lists, got {sweep.axes!r}")
    for key, values in sweep.axes.items():
        if not isinstance(values, list) or not values:
            raise UsageError(f"sweep {sweep.name}: axis {key} must be a list of values, got {values!r}")
        if key in sweep.base:
            raise UsageError(f"sweep {sweep.name}: {key} is in the base and an axis; keep one")
    kinds = setting_types(str(sweep.base.get("environment")))
    for key, value in sweep.base.items():
        if key in kinds and _is_axis(kinds[key], value):
            raise UsageError(f"sweep {sweep.name}: {key} in [base] is a list of values: {value!r}; put it under [axes]")
    variants = sweep.variants
    if not isinstance(variants, list | tuple) or not variants or not all(isinstance(one, dict) for one in variants):
        raise UsageError(
            f"sweep {sweep.name}: variants must be tables of settings under [[variants]], got {variants!r}"
        )
    for variant in variants:
        if "seed" in variant or "environment" in variant:
            raise UsageError(f"sweep {sweep.name}: a variant sets no seed and no environment, got {variant!r}")
    return sweep


def _is_axis(kind: Any, value: Any) -> bool:
    """Return whether `value` is a list of values for a setting of type `kind`."""
    of_lists = isinstance(value, list) and any(isinstance(one, list | dict) for one in value)
    return of_lists or (isinstance(value, list) and item_kind(kind) is None)


def _looks_like_a_list(kind: Any, text: str) -> bool:
    """Return whether a text that is no list was meant as one; the parameters of a strategy may have commas."""
    return text.startswith("[") or (kind is not Any and "," in text.partition(":")[0] and item_kind(kind) is None)


def _suggested_list(key: str, kind: Any, text: str) -> str:
    """Return what to write instead of a text that was meant as a list."""
    words = [word.strip(" '\"") for word in split_values(text.strip("[]"))]
    try:
        values = [parse_as(kind, word) for word in words]
    except ValueError:
        return "a list is in brackets and quotes, as in 'seed=[0, 1]' or 'hidden_sizes=[[8, 8], [16]]'"
    return f"write {shlex.quote(f'{key}={json.dumps(values, ensure_ascii=False)}')}"


def _parse_override(kind: Any, text: str) -> Any:
    """Return the value that `text` stands for; one that is not a `kind` is refused by the configuration."""
    if not text.startswith(("[", '"', "'")):
        with suppress(ValueError):
            return parse_as(kind, text)
    return parse_as(Any, text)


def _value_in(settings: Mapping[str, Any], key: str) -> Any:
    """Return the resolved value of a key; None if `settings` are not a whole configuration by themselves."""
    try:
        return to_flat(resolve(from_flat(settings)))[key]
    except ValueError:
        return None


def _run_path(settings: Mapping[str, Any], keys: Sequence[str]) -> PurePosixPath:
    """Return a readable path for a run: a directory for each axis and each setting of its variant, the seed last."""
    parts = []
    for key in keys:
        word = "-".join(re.findall(r"(?<![a-z0-9])-?[a-z0-9.]+", str(settings[key]).lower()))
        parts.append(word if key in _UNPREFIXED else f"{key.replace('_', '-')}-{word}")
    return PurePosixPath(*parts, f"seed-{settings['seed']}")
