"""Presets: named sets of settings for each environment, on top of its defaults."""

from collections.abc import Mapping
from typing import Any, Literal

Preset = Literal["paper", "explorer"]

_ENSEMBLE = {"strategy": "gain", "mask_probability": 1.0, "prior_scale": 3.0, "embedding_scale": 1.0}
_LARGE_REPLAY = {"replay_capacity": 1_000_000}
EXPLORER: Mapping[str, Mapping[str, Any]] = {
    "deep-sea": _ENSEMBLE | _LARGE_REPLAY | {"update_every": 1, "target_every": 4},
    "bsuite": _ENSEMBLE | _LARGE_REPLAY,
    "atari": {"strategy": "gain"},
    "minatar": {"strategy": "gain"},
    "gym": _ENSEMBLE,
}
"""Settings that solved the largest grids in our experiments, by the kind of the environment; ours.

DeepSea's settings are those around which reproduction/sweeps/deep-sea-search.toml searches. Other vector environments
take only the ensemble settings; image environments, untested, only the strategy.
"""


def preset_settings(preset: Preset, kind: str) -> Mapping[str, Any]:
    """Return the settings of a preset that differ from the defaults of an environment of this kind."""
    return EXPLORER[kind] if preset == "explorer" else {}
