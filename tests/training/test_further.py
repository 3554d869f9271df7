"""Extending a run: with a larger budget it equals a run that had that budget from the start."""

import json

import pytest

from bootdqn import api
from bootdqn.cli.main import run_command_line
from bootdqn.common.errors import UsageError
from bootdqn.config.defaults import DEFAULTS
from bootdqn.config.settings import budget_change, from_flat, to_flat
from bootdqn.config.train import SavingConfig, resolve
from bootdqn.runs.checkpoint import Checkpoints
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.provenance import Provenance
from bootdqn.sweeps.executor import split_remaining
from bootdqn.sweeps.sweep_file import deep_sea_sweep
from bootdqn.training import run as run_module
from bootdqn.training.callbacks import RunCallbacks
from bootdqn.training.run import default_run_dir, train_run
from reference.faults import (
    AUTOGRAD,
    COMPILED,
    EVALUATED,
    STEPS,
    assert_good_checkpoint,
    results,
    stopping_at,
    train_by_command,
)

pytestmark = pytest.mark.usefixtures("one_thread")
KEPT = SavingConfig(keep_checkpoint=True)
LESS = {"total_steps": STEPS // 2 - 3}
SEA = {
    "environment": "deep-sea",
    "update_every": 1,
    "size": 4,
    "num_heads": 4,
    "hidden_sizes": [8, 8],
    "stop_when_solved": False,
}


def config(**settings):
    return from_flat(SEA | {"learning_starts": 20, "log_every": 7} | settings)


def held(path):
    """Return every file of a directory with its content."""
    return {file: file.read_bytes() for file in sorted(path.rglob("*")) if file.is_file()}


@pytest.mark.parametrize(
    "settings", [COMPILED, AUTOGRAD, COMPILED | EVALUATED], ids=["compiled", "autograd", "evaluated"]
)
def test_a_finished_run_that_is_extended_equals_the_longer_run(path, capsys, unbroken, settings):
    assert train_by_command(settings | LESS, path, "--keep-checkpoint") == 0
    assert_good_checkpoint(path, LESS["total_steps"])
    assert run_command_line(["resume", str(path), "--budget", str(STEPS)]) == 0
    assert f"Resuming from step {LESS['total_steps']}" in capsys.readouterr().err
    assert results(path) == unbroken(settings)
    assert RunDirectory(path).read_config()["total_steps"] == STEPS
    assert_good_checkpoint(path, STEPS)
    assert json.loads(RunDirectory(path).provenance.read_text())["exact"]


@pytest.mark.parametrize("num_envs", [1, 3])
def test_on_deep_sea_episodes_beyond_the_smaller_cap_count_with_the_larger(tmp_path, num_envs):
    train_run(config(max_episodes=31, num_envs=num_envs), tmp_path / "run", saving=KEPT)
    assert RunDirectory(tmp_path / "run").read_summary()["episodes"] == 31
    train_run(config(max_episodes=80, num_envs=num_envs), tmp_path / "run", saving=KEPT)
    train_run(config(max_episodes=80, num_envs=num_envs), tmp_path / "whole")
    assert results(tmp_path / "run") == results(tmp_path / "whole")
    further, whole = (RunDirectory(tmp_path / name).read_summary() for name in ("run", "whole"))
    assert further | {"seconds": 0} == whole | {"seconds": 0}


def test_a_run_may_be_extended_repeatedly(tmp_path):
    for cap in (10, 11, 40):
        train_run(config(max_episodes=cap), tmp_path / "run", saving=KEPT)
    train_run(config(max_episodes=40), tmp_path / "whole")
    assert results(tmp_path / "run") == results(tmp_path / "whole")
    assert train_run(config(max_episodes=40), tmp_path / "run").already_finished


def test_a_stopped_run_resumes_with_a_larger_budget(path, monkeypatch, unbroken):
    with stopping_at(monkeypatch, 60):
        assert train_by_command(COMPILED | LESS, path) == 143
    assert train_by_command(COMPILED, path) == 0
    assert results(path) == unbroken(COMPILED)


def test_a_run_with_a_kept_checkpoint_is_extended_from_python(tmp_path):
    settings = SEA | {"learning_starts": 20}
    api.train(settings | {"max_episodes": 10}, tmp_path / "run", keep_checkpoint=True)
    assert api.train(settings | {"max_episodes": 30}, tmp_path / "run")["episodes"] == 30


def test_a_finished_run_without_a_checkpoint_is_unchanged_and_the_remedy_is_named(tmp_path):
    train_run(config(max_episodes=10), tmp_path / "run")
    before = held(tmp_path)
    with pytest.raises(
        UsageError, match=r"finished \(max_episodes 10\) and has no checkpoint .*3,000: only --keep-checkpoint"
    ):
        train_run(config(max_episodes=3000), tmp_path / "run")
    assert held(tmp_path) == before
    train_run(config(max_episodes=30), tmp_path / "run", restart=True)
    train_run(config(max_episodes=30), tmp_path / "whole")
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def test_another_setting_beside_the_budget_is_another_run(tmp_path):
    train_run(config(max_episodes=10), tmp_path / "run", saving=KEPT)
    before = held(tmp_path)
    with pytest.raises(UsageError, match="holds another configuration"):
        train_run(config(max_episodes=30, learning_rate=0.5), tmp_path / "run")
    assert held(tmp_path) == before


def test_a_smaller_budget_than_was_used_is_an_error(tmp_path, capsys):
    train_run(config(max_episodes=10), tmp_path / "run", saving=KEPT)
    before = held(tmp_path)
    assert run_command_line(["resume", str(tmp_path / "run"), "--budget", "4"]) == 2
    assert (
        "has used 10 episodes of at most 10, more than a budget of 4; choose another run directory"
        in capsys.readouterr().err
    )
    assert held(tmp_path) == before
    train_run(config(max_episodes=4), tmp_path / "run", restart=True)
    train_run(config(max_episodes=4), tmp_path / "whole")
    assert results(tmp_path / "run") == results(tmp_path / "whole")


@pytest.mark.parametrize("stopped", ["asked to stop", "killed"])
def test_a_stopped_run_may_have_a_smaller_budget_that_is_not_used_yet(path, monkeypatch, unbroken, stopped):
    with stopping_at(monkeypatch, 60):
        train_by_command(COMPILED, path)
    if stopped == "killed":
        RunDirectory(path).summary.unlink()
    before = held(path)
    with pytest.raises(UsageError, match=rf"has used 60 steps of at most {STEPS}, more than a budget of 59"):
        train_run(from_flat(RunDirectory(path).read_config() | {"total_steps": 59}), path)
    assert held(path) == before
    assert train_by_command(LESS, path) == 0
    assert results(path) == unbroken(LESS)
    assert RunDirectory(path).read_config()["total_steps"] == LESS["total_steps"]


def test_a_solved_run_may_have_a_smaller_cap_that_it_did_not_reach(tmp_path):
    solving = {"size": 3, "num_heads": 20, "hidden_sizes": [50, 50], "stop_when_solved": True}
    used = train_run(config(max_episodes=1000, **solving), tmp_path / "run").summary["episodes"]
    with pytest.raises(UsageError, match=f"has used {used} episodes of at most 1,000, more than"):
        train_run(config(max_episodes=used - 1, **solving), tmp_path / "run")
    assert train_run(config(max_episodes=used, **solving), tmp_path / "run").already_finished
    train_run(config(max_episodes=used, **solving), tmp_path / "whole")
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def test_a_run_killed_while_it_is_being_extended_can_still_be_extended(tmp_path, monkeypatch):
    train_run(config(max_episodes=10), tmp_path / "run", saving=KEPT)

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run_module, "write_json_atomically", killed)
        with pytest.raises(KeyboardInterrupt):
            train_run(config(max_episodes=30), tmp_path / "run")
    train_run(config(max_episodes=30), tmp_path / "run")
    train_run(config(max_episodes=30), tmp_path / "whole")
    assert results(tmp_path / "run") == results(tmp_path / "whole")


def test_a_longer_run_without_a_given_directory_has_its_own_run_directory(tmp_path):
    first = default_run_dir(config(max_episodes=10), tmp_path)
    train_run(config(max_episodes=10), first, saving=KEPT)
    assert default_run_dir(config(max_episodes=30), tmp_path) != first


def test_a_run_whose_state_cannot_be_restored_stays_finished(tmp_path, monkeypatch):
    train_run(config(max_episodes=10), tmp_path / "run", saving=KEPT)
    before = held(tmp_path)

    def fail(*_):
        raise MemoryError("none left")

    with monkeypatch.context() as patch:
        patch.setattr("bootdqn.training.trainer.set_state", fail)
        with pytest.raises(MemoryError):
            train_run(config(max_episodes=30), tmp_path / "run")
    assert held(tmp_path) == before
    assert train_run(config(max_episodes=30), tmp_path / "run").summary["episodes"] == 30


def test_only_the_last_checkpoint_is_kept(tmp_path):
    saving = SavingConfig(keep_checkpoint=True, checkpoint_every_steps=16)
    train_run(config(max_episodes=10), tmp_path / "run", saving=saving)
    assert [path.name for path in (tmp_path / "run/checkpoints").glob("step-*")] == ["step-000000000040"]
    assert_good_checkpoint(tmp_path / "run", 40)
    (*_, last) = (json.loads(line) for line in (tmp_path / "run/timing.jsonl").read_text().splitlines())
    assert last["checkpoint_bytes"] > 0


def test_a_run_whose_last_checkpoint_could_not_be_written_is_not_finished(tmp_path, monkeypatch):
    original, warned = Checkpoints.save, []

    def full(checkpoints, step, *rest):
        if step:
            raise OSError(28, "No space left on device")
        return original(checkpoints, step, *rest)

    with monkeypatch.context() as patch:
        patch.setattr(Checkpoints, "save", full)
        outcome = train_run(config(max_episodes=10), tmp_path / "run", RunCallbacks(warn=warned.append), saving=KEPT)
    assert outcome.exit_code == 1
    assert "No space left on device" in warned[-1]
    assert RunDirectory(tmp_path / "run").read_summary() is None
    assert train_run(config(max_episodes=10), tmp_path / "run", saving=KEPT).exit_code == 0
    assert_good_checkpoint(tmp_path / "run", 40)


def test_a_solved_run_gets_a_larger_cap_without_training(tmp_path):
    solving = {"size": 3, "num_heads": 20, "hidden_sizes": [50, 50], "stop_when_solved": True}
    train_run(config(max_episodes=1000, **solving), tmp_path / "run")
    before = RunDirectory(tmp_path / "run").read_summary()
    assert before["episodes"] < 1000
    outcome = train_run(config(max_episodes=5000, **solving), tmp_path / "run")
    assert outcome.already_finished
    assert RunDirectory(tmp_path / "run").read_summary() == outcome.summary == before
    train_run(config(max_episodes=5000, **solving), tmp_path / "whole")
    assert results(tmp_path / "run") == results(tmp_path / "whole")
    assert RunDirectory(tmp_path / "run").read_config() == RunDirectory(tmp_path / "whole").read_config()


def test_a_solved_run_with_a_larger_cap_keeps_the_checkpoint_it_was_asked_to_keep(tmp_path):
    solving = {"size": 3, "num_heads": 20, "hidden_sizes": [50, 50], "stop_when_solved": True}
    train_run(config(max_episodes=1000, **solving), tmp_path / "run", saving=KEPT)
    assert train_run(config(max_episodes=5000, **solving), tmp_path / "run", saving=KEPT).already_finished
    assert_good_checkpoint(tmp_path / "run", RunDirectory(tmp_path / "run").read_summary()["steps"])


def test_a_stopped_run_remembers_that_it_keeps_its_checkpoint(path, monkeypatch, capsys):
    with stopping_at(monkeypatch, 60):
        assert train_by_command(COMPILED, path, "--keep-checkpoint") == 143
    assert f"bootdqn resume {path} resumes it" in capsys.readouterr().err
    assert run_command_line(["resume", str(path), "--quiet"]) == 0
    assert_good_checkpoint(path, STEPS)


@pytest.mark.parametrize(
    ("first", "then"), [("--keep-checkpoint", "--no-keep-checkpoint"), ("--quiet", "--keep-checkpoint")]
)
def test_whether_it_is_kept_can_be_changed_until_the_end(path, monkeypatch, first, then):
    with stopping_at(monkeypatch, 60, 120):
        assert train_by_command(COMPILED, path, first) == 143
        assert run_command_line(["resume", str(path), "--quiet", then]) == 143
    assert run_command_line(["resume", str(path), "--quiet"]) == 0
    assert RunDirectory(path).checkpoints.exists() == (then == "--keep-checkpoint")


def test_the_checkpoint_of_a_finished_run_is_removed_when_that_is_asked_for(path, unbroken):
    assert train_by_command(COMPILED, path, "--keep-checkpoint") == 0
    for more in ([], ["--no-keep-checkpoint"]):
        assert RunDirectory(path).checkpoints.exists()
        assert run_command_line(["resume", str(path), *more]) == 0
    assert not RunDirectory(path).checkpoints.exists()
    assert results(path) == unbroken(COMPILED)
    assert not Provenance.read(RunDirectory(path)).keeps_checkpoint


def test_a_sweep_extends_its_runs_and_reports_those_it_cannot(tmp_path):
    short, long = (deep_sea_sweep(["greedy"], [3], 2, cap).runs() for cap in (4, 9))
    train_run(short[0].config, tmp_path / short[0].name, saving=KEPT)
    train_run(short[1].config, tmp_path / short[1].name)
    todo, ended = split_remaining(long, tmp_path)
    assert [one.name for one in todo] == [long[0].name]
    (other,) = ended
    assert other.run.name == long[1].name
    assert "--keep-checkpoint" in other.error


@pytest.mark.parametrize("kind", DEFAULTS)
def test_only_the_budget_may_change(kind):
    settings = to_flat(resolve(DEFAULTS[kind]))
    budget = DEFAULTS[kind].env.budget
    less, more = settings[budget], settings[budget] + 1
    larger = settings | {budget: more}
    assert budget_change(settings, larger) == (budget, less, more)
    assert budget_change(larger, settings) == (budget, more, less)
    assert budget_change(settings, settings) is None
    assert budget_change(settings, larger | {"seed": 77}) is None
    assert budget_change(settings, larger | {"snapshot_every": 100}) == (budget, less, more), "that changes no number"
    assert budget_change(settings | {budget: "few"}, larger) is None
    assert budget_change({}, larger) is None
