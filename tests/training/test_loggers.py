"""Loggers: the metrics that TensorBoard gets, and a clear error where a package is missing."""

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
from rich.console import Console

from bootdqn.common.errors import UsageError
from bootdqn.config.settings import from_flat
from bootdqn.config.train import LoggerConfig
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.user_code_imports import UserCodeImports
from bootdqn.sweeps.local import RunSettings, train_planned_run
from bootdqn.sweeps.run_sweep import run_sweep
from bootdqn.sweeps.sweep_file import deep_sea_sweep
from bootdqn.training.callbacks import RunCallbacks
from bootdqn.training.loggers import WandbLogger, scalars
from bootdqn.training.run import train_run
from reference.faults import COMPILED, steps_watched, train

SMALL = {
    "environment": "deep-sea",
    "update_every": 1,
    "size": 3,
    "max_episodes": 60,
    "stop_when_solved": False,
    "log_every": 20,
}


def test_scalars_leave_out_steps_and_times_and_keep_metrics():
    record = {"kind": "evaluation", "step": 3, "frames": 12, "mean_return": 1.5, "returns": [1, 2], "cut": False}
    assert dict(scalars(record)) == {"evaluation/mean_return": 1.5, "evaluation/cut": 0.0}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_holds_the_numbers_of_the_metrics(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    train_run(from_flat(SMALL), tmp_path / "run", tensorboard=True)
    events = EventAccumulator(str(tmp_path / "run/tensorboard"))
    events.Reload()
    episodes = list(RunDirectory(tmp_path / "run").read_metrics("episode"))
    logged = events.Scalars("episode/return")
    assert [event.step for event in logged] == [record["step"] for record in episodes]
    assert [event.value for event in logged] == pytest.approx([record["return"] for record in episodes])
    assert "update/loss" in events.Tags()["scalars"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_shows_every_step_of_a_killed_run_once(tmp_path, monkeypatch):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    def kill(components):
        if components.loop.step == 170:
            raise KeyboardInterrupt

    path = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt), steps_watched(monkeypatch, kill):
        train(COMPILED, path, tensorboard=True)
    train(COMPILED, path, tensorboard=True)
    events = EventAccumulator(str(path / "tensorboard"))
    events.Reload()
    logged = [(event.step, event.value) for event in events.Scalars("update/loss")]
    written = [(record["step"], record["loss"]) for record in RunDirectory(path).read_metrics("update")]
    assert [step for step, _ in logged] == [step for step, _ in written]
    assert [loss for _, loss in logged] == pytest.approx([loss for _, loss in written])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_restarted_run_logs_nothing_of_its_first_attempt(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    path = tmp_path / "run"
    train_run(from_flat(SMALL), path, tensorboard=True)
    (first,) = (path / "tensorboard").iterdir()
    (path / "tensorboard/notes.txt").write_text("not the run's")
    train_run(from_flat(SMALL), path, restart=True, tensorboard=True)
    assert not first.exists()
    assert (path / "tensorboard/notes.txt").exists()
    events = EventAccumulator(str(path / "tensorboard"))
    events.Reload()
    assert len(events.Scalars("episode/return")) == SMALL["max_episodes"]
    train_run(from_flat(SMALL), path, restart=True)
    assert [file.name for file in (path / "tensorboard").iterdir()] == ["notes.txt"]


def test_a_logger_that_cannot_be_opened_is_named_in_a_line_and_harms_nothing(tmp_path, monkeypatch):
    def fail(*_arguments, **_options):
        raise ConnectionError("no key")

    wandb = ModuleType("wandb")
    wandb.__spec__, wandb.init = ModuleSpec("wandb", None), fail
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    expected_error = pytest.raises(
        UsageError, match=r"--wandb could not be opened \(ConnectionError: no key\); fix that, or leave"
    )
    with expected_error:
        train_run(from_flat(SMALL), tmp_path / "run", wandb=True)
    finished = train_run(from_flat(SMALL), tmp_path / "run").summary
    with expected_error:
        train_run(from_flat(SMALL), tmp_path / "run", restart=True, wandb=True)
    assert RunDirectory(tmp_path / "run").read_summary() == finished, "nothing is removed before all is ready"


class FailingSink:
    """Fails from its so-many-th call on; closing is a call, too."""

    name = "The logger"

    def __init__(self, good_calls):
        self.good_calls, self.calls = good_calls, 0

    def write(self, _record):
        self.calls += 1
        if self.calls > self.good_calls:
            raise OSError(27, "File too large")

    def close(self):
        self.write({})


@pytest.mark.parametrize("good_calls", [0, 7])
def test_a_logger_that_fails_is_named_once_and_training_continues(tmp_path, monkeypatch, good_calls):
    failing, good = FailingSink(good_calls), FailingSink(10**9)
    monkeypatch.setattr("bootdqn.training.run._open_loggers", lambda *_args, **_options: [failing, good])
    warnings = []
    assert train_run(from_flat(SMALL), tmp_path / "logged", RunCallbacks(warn=warnings.append)).exit_code == 0
    monkeypatch.undo()
    train_run(from_flat(SMALL), tmp_path / "alone")
    assert (tmp_path / "logged/metrics.jsonl").read_bytes() == (tmp_path / "alone/metrics.jsonl").read_bytes()
    assert failing.calls == good_calls + 1
    assert good.calls == 1 + len(list(RunDirectory(tmp_path / "logged").read_metrics()))
    (warning,) = warnings
    assert warning.startswith("The logger failed (OSError: [Errno 27] File too large)")
    assert warning.endswith("training continues")


def test_a_logger_that_fails_at_its_close_spoils_nothing(tmp_path, monkeypatch):
    train_run(from_flat(SMALL), tmp_path / "alone")
    failing = FailingSink(len(list(RunDirectory(tmp_path / "alone").read_metrics())))
    monkeypatch.setattr("bootdqn.training.run._open_loggers", lambda *_args, **_options: [failing])
    warnings = []
    outcome = train_run(from_flat(SMALL), tmp_path / "logged", RunCallbacks(warn=warnings.append))
    assert outcome.summary["status"] == "finished"
    assert len(warnings) == 1


def test_a_missing_package_is_named_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"in the clone of bootdqn, pip install .*'\.\[wandb\]'"):
        train_run(from_flat(SMALL), tmp_path / "run", wandb=True)
    assert not (tmp_path / "run").exists()


def test_weights_and_biases_gets_the_configuration_and_every_record(tmp_path, monkeypatch):
    class Run:
        def __init__(self):
            self.logged, self.finished = [], False

        def log(self, record):
            self.logged.append(record)

        def finish(self):
            self.finished = True

    fake = Run()
    started = {}

    class Wandb:
        @staticmethod
        def init(**options):
            started.update(options)
            return fake

    monkeypatch.setitem(sys.modules, "wandb", Wandb)
    logger = WandbLogger(tmp_path, {"size": 3}, "identity")
    logger.write({"kind": "update", "step": 7, "updates": 2, "loss": 0.5})
    logger.close()
    assert started["config"] == {"size": 3}
    assert (started["id"], started["resume"]) == ("identity", "allow")
    assert fake.logged == [{"update/loss": 0.5, "step": 7}]
    assert fake.finished


def test_the_runs_of_a_sweep_are_one_group_each_named_by_its_directory(tmp_path, monkeypatch):
    started = []
    wandb = ModuleType("wandb")
    wandb.__spec__ = ModuleSpec("wandb", None)
    wandb.init = lambda **options: started.append(options) or FailingSink(10**9)
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    out = tmp_path / "my-sweep"
    settings = RunSettings(out, UserCodeImports(), None, LoggerConfig(tensorboard=True, wandb=True))
    for planned in deep_sea_sweep(["greedy", "gain"], [3], num_seeds=1, max_episodes=5).runs():
        assert train_planned_run(planned, settings).finished
        assert list((out / planned.name / "tensorboard").iterdir())
    assert [(run["group"], run["name"]) for run in started] == [
        ("my-sweep", "size-3/greedy/seed-0"),
        ("my-sweep", "size-3/gain/seed-0"),
    ]
    assert len({run["id"] for run in started}) == 2


def test_a_sweep_names_a_missing_package_before_it_starts_a_process(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    runs = deep_sea_sweep(["greedy"], [3], num_seeds=1, max_episodes=5).runs()
    with pytest.raises(UsageError, match="--tensorboard needs a package"):
        run_sweep(runs, tmp_path / "out", Console(quiet=True), loggers=LoggerConfig(tensorboard=True))
    assert not (tmp_path / "out").exists()
