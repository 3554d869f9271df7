"""Records elsewhere: what TensorBoard is told, and a clear word where a package is missing."""

import sys

import pytest

from bootdqn.common.errors import UsageError
from bootdqn.common.run_folder import RunFolder
from bootdqn.training.config import from_flat
from bootdqn.training.run import run
from bootdqn.training.sinks import WandbSink, scalars

SMALL = {"environment": "deep-sea", "size": 3, "max_episodes": 60, "stop_when_solved": False, "log_every": 20}


def test_scalars_leave_out_when_and_keep_what():
    record = {"kind": "evaluation", "step": 3, "frames": 12, "mean_return": 1.5, "returns": [1, 2], "cut": False}
    assert dict(scalars(record)) == {"evaluation/mean_return": 1.5, "evaluation/cut": 0.0}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_tensorboard_holds_the_numbers_of_the_metrics(tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run(from_flat(SMALL), tmp_path / "run", tensorboard=True)
    events = EventAccumulator(str(tmp_path / "run/tensorboard"))
    events.Reload()
    episodes = list(RunFolder(tmp_path / "run").read_metrics("episode"))
    told = events.Scalars("episode/return")
    assert [event.step for event in told] == [record["step"] for record in episodes]
    assert [event.value for event in told] == pytest.approx([record["return"] for record in episodes])
    assert "update/loss" in events.Tags()["scalars"]


def test_a_missing_package_is_named_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"in the clone of bootdqn, pip install .*'\.\[wandb\]'"):
        run(from_flat(SMALL), tmp_path / "run", wandb=True)
    assert not (tmp_path / "run").exists()


def test_weights_and_biases_is_told_the_configuration_and_every_record(tmp_path, monkeypatch):
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
    sink = WandbSink(tmp_path, {"size": 3}, "identity")
    sink.write({"kind": "update", "step": 7, "updates": 2, "loss": 0.5})
    sink.close()
    assert started["config"] == {"size": 3}
    assert (started["id"], started["resume"]) == ("identity", "allow")
    assert fake.logged == [{"update/loss": 0.5, "step": 7}]
    assert fake.finished
