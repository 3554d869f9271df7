"""The sweeps that studies follow, and how many of their runs are finished."""

from bootdqn.sweeps.sweep_file import PlannedRun, load_sweep, sweep_names
from reproduction.archive import is_finished, read_rows
from reproduction.studies import ROOT

_FILES = "reproduction/sweeps"
SWEEPS = {
    "deep-sea": "paper-deepsea",
    "deep-sea-every-step": "paper-deepsea-every-step",
    "deep-sea-sensitivity": "deepsea-sensitivity",
    "deep-sea-choices": f"{_FILES}/deep-sea-choices.toml",
    "deep-sea-ablation": "deepsea-ablation",
    "deep-sea-frontier": "deepsea-frontier",
    "deep-sea-search": f"{_FILES}/deep-sea-search.toml",
    "deep-sea-explorer": f"{_FILES}/deep-sea-explorer.toml",
    "deep-sea-no-prior": f"{_FILES}/deep-sea-no-prior.toml",
    "deep-sea-score": f"{_FILES}/deep-sea-score.toml",
    "deep-sea-large": f"{_FILES}/deep-sea-large.toml",
    "explorer-harm": f"{_FILES}/explorer-harm.toml",
    "explorer-harm-minatar": f"{_FILES}/explorer-harm-minatar.toml",
    "minatar-learning-rate": f"{_FILES}/minatar-learning-rate.toml",
    "paper-minatar": "paper-minatar",
    "minatar-heads": "minatar-heads",
    "minatar-100k": f"{_FILES}/minatar-100k.toml",
    "minigrid-search": f"{_FILES}/minigrid-search.toml",
    "minigrid-epsilon": f"{_FILES}/minigrid-epsilon.toml",
    "minigrid-doorkey": f"{_FILES}/minigrid-doorkey.toml",
    "minigrid-others": f"{_FILES}/minigrid-others.toml",
    "bsuite-swingup": f"{_FILES}/bsuite-swingup.toml",
    "bsuite-stochastic": f"{_FILES}/bsuite-stochastic.toml",
    "atari-alien": f"{_FILES}/atari-alien.toml",
    "atari-alien-longer": f"{_FILES}/atari-alien-longer.toml",
}
"""The sweep of each study: its name, or its file."""


def planned_runs(study: str) -> list[PlannedRun]:
    """Return the runs that the sweep of a study plans."""
    sweep = SWEEPS[study]
    return load_sweep(sweep if sweep in sweep_names() else str(ROOT / sweep)).runs()


def progress(study: str) -> tuple[int, int]:
    """Return how many of a study's planned runs are finished, and how many are planned."""
    planned = planned_runs(study)
    finished = {row["run"] for row in read_rows(study) if is_finished(row)}
    return sum(str(run.name) in finished for run in planned), len(planned)
