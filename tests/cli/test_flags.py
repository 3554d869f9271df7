"""Flags that change nothing about a run's numbers: each reaches the code that uses it."""

import json

import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.config.train import LoggerConfig, SavingConfig

TRAIN, SWEEP = "train deep-sea", "sweep paper-deepsea-smoke"
UNTOLD = {"tensorboard": False, "wandb": False, "restart": False, "saving": SavingConfig()}
EVERY = "--checkpoint-every-minutes 7 --checkpoint-every-steps 9"
SAVING = {"saving": SavingConfig(checkpoint_every_minutes=7.0, checkpoint_every_steps=9)}


class ReachedError(Exception):
    """Raised instead of doing the work."""


@pytest.mark.parametrize(
    ("line", "doing", "expected"),
    [
        (TRAIN, "training.run.train_run", UNTOLD),
        (f"{TRAIN} --tensorboard", "training.run.train_run", UNTOLD | {"tensorboard": True}),
        (f"{TRAIN} --wandb", "training.run.train_run", UNTOLD | {"wandb": True}),
        (f"{TRAIN} --restart", "training.run.train_run", UNTOLD | {"restart": True}),
        (f"{TRAIN} {EVERY}", "training.run.train_run", UNTOLD | SAVING),
        (f"resume begun {EVERY}", "training.run.train_run", UNTOLD | SAVING),
        (f"{SWEEP} --retries 4 {EVERY}", "sweeps.run_sweep.run_sweep", {"retries": 4, **SAVING}),
        (f"{SWEEP} --wandb", "sweeps.run_sweep.run_sweep", {"loggers": LoggerConfig(wandb=True)}),
        (f"{SWEEP} --tensorboard", "sweeps.run_sweep.run_sweep", {"loggers": LoggerConfig(tensorboard=True)}),
        (f"{SWEEP} --workers 3", "sweeps.run_sweep.run_sweep", {"workers": 3, "retries": 1}),
        (
            "evaluate begun --episodes 2 --max-steps 3 --seed 5 --vote mean --weights 8",
            "training.evaluation.evaluate_saved_run",
            {"episodes": 2, "max_steps": 3, "seed": 5, "rule": "mean", "weights": "8"},
        ),
        (
            "inspect begun --episodes 2 --max-steps 3 --seed 5 --head 1 --strategy gain --weights 8",
            "inspector.page.inspect_run",
            {"episodes": 2, "max_steps": 3, "seed": 5, "head": 1, "strategy": "gain", "weights": "8"},
        ),
    ],
)
def test_every_flag_reaches_what_it_is_for(tmp_path, monkeypatch, line, doing, expected):
    seen = {}

    def noted(*_, **options):
        seen.update(options)
        raise ReachedError

    (tmp_path / "begun").mkdir()
    (tmp_path / "begun/config.json").write_text(json.dumps({"environment": "deep-sea", "size": 3}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(f"bootdqn.{doing}", noted)
    with pytest.raises(ReachedError):
        run_command_line(line.split())
    assert {name: seen[name] for name in expected} == expected
