"""User strategies and environments from the command line, and that no file ever imports code by itself."""

import contextlib
import json
import sys

import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.config.settings import from_flat, to_flat
from bootdqn.runs.directory import RunDirectory
from reference.user_code import ENVIRONMENT, STRATEGY
from torture.legs import stopping_at

SMALL = [
    "--size",
    "4",
    "--update-every",
    "1",
    "--num-heads",
    "4",
    "--hidden-sizes",
    "8",
    "8",
    "--max-episodes",
    "40",
    "--quiet",
]
TRAIN = ["train", "deep-sea", *SMALL, "--no-stop-when-solved"]
MINE = ["--strategy-from", "my_strategy.Mine"]
GYM = ["train", "gym", "--env-id", "Mine-v0", "--total-steps", "60", "--learning-starts", "30", "--quiet"]
GYM += ["--eval-every-steps", "60", "--eval-episodes", "2", "--hidden-sizes", "8"]
LAKE = ["--import", "my_lake"]


@pytest.fixture(autouse=True)
def modules(user_code):
    user_code.write("my_strategy", STRATEGY)
    user_code.write("my_lake", ENVIRONMENT)


def answer(arguments, capsys, code=2):
    """Return the output of a command line that ends with `code`."""
    assert run_command_line(arguments) == code
    output = capsys.readouterr()
    return output.err if code else output.out


def config_of(path):
    return json.loads((path / "config.json").read_text())


# Strategies


def test_a_user_strategy_is_trained_with_its_defaults_or_with_parameters(tmp_path):
    for name, more in (("plain", []), ("scaled", ["--strategy", "mine:scale=3"]), ("evoi", ["--strategy", "evoi"])):
        own = [] if name == "evoi" else MINE
        assert run_command_line([*TRAIN, *own, *more, "--run-dir", str(tmp_path / name)]) == 0
    found = {name: config_of(tmp_path / name) for name in ("plain", "scaled", "evoi")}
    assert [(flat["strategy"], flat["strategy_from"]) for flat in found.values()] == [
        ("mine", "my_strategy.Mine"),
        ("mine:scale=3.0", "my_strategy.Mine"),
        ("evoi", None),
    ]
    metrics = {name: (tmp_path / name / "metrics.jsonl").read_bytes() for name in found}
    assert len(set(metrics.values())) == 3
    provenance = json.loads((tmp_path / "plain/provenance.json").read_text())
    assert list(provenance["user_code"]) == ["my_strategy"]


@pytest.mark.parametrize("flag", [["--strategy-from=my_strategy.Mine"], ["--strategy_from", "my_strategy.Mine"]])
def test_the_flag_is_seen_however_it_is_written(flag, tmp_path):
    assert run_command_line([*TRAIN, *flag, "--run-dir", str(tmp_path / "run")]) == 0
    assert config_of(tmp_path / "run")["strategy_from"] == "my_strategy.Mine"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            [*TRAIN, *MINE, "--strategy", "gain"],
            "--strategy gain is not --strategy-from my_strategy.Mine, whose name is",
        ),
        ([*TRAIN, *MINE, "--strategy", "mine:scael=1"], "mine has no parameter 'scael'; did you mean 'scale'?"),
        ([*TRAIN, "--strategy", "mine"], "unknown strategy 'mine'"),
        ([*TRAIN, "--strategy-from", "my_strategy.Mein"], "did you mean 'Mine'?"),
        ([*TRAIN, "--strategy-from", "my_stratgy.Mine"], "no module 'my_stratgy' is installed, or in"),
        ([*TRAIN, "--strategy-from", "curious.py"], "as in curious.MyStrategy; got 'curious.py'"),
        ([*TRAIN, "--strategy-from", "./curious.py"], "must be MODULE.CLASS, as in curious.MyStrategy"),
        ([*TRAIN, "--strategy-from"], "--strategy-from expected one argument"),
        ([*TRAIN, *LAKE], "unknown flag --import"),
        (["report", ".", *MINE], "unknown flag --strategy-from"),
        ([*GYM, "--import", "my_laek"], "--import my_laek: no module 'my_laek' is installed"),
        ([*GYM, "--import", "my-lake"], "--import must be the name of a module"),
        ([*GYM], "--import MODULE imports a module that registers one"),
        (["demo", "--strategy-from", "nowhere.Mine"], "no module 'nowhere'"),
    ],
)
def test_a_usage_error_takes_one_or_two_lines(arguments, message, capsys, tmp_path):
    before = sorted(tmp_path.iterdir())
    output = answer(arguments, capsys)
    assert message in output
    assert len(output.strip().splitlines()) <= 2
    assert sorted(tmp_path.iterdir()) == before, "a mistake leaves no files"


def test_a_strategy_that_raises_stops_the_run_and_is_named(user_code, tmp_path, capsys):
    trap = "if self.scale == 2: raise KeyError('trap')\n            return bootdqn.head_values"
    user_code.write("my_strategy", STRATEGY.replace("return bootdqn.head_values", trap))
    arguments = [*TRAIN, *MINE, "--strategy", "mine:scale=2", "--run-dir", str(tmp_path / "run")]
    output = answer(arguments, capsys, code=1)
    where = f"in {tmp_path / 'my_strategy.py'}, line 14 (step 0)"
    assert f"strategy mine:scale=2.0 raised KeyError: 'trap' {where}; " in output
    assert output.endswith("keeps its last checkpoint, and summary.json the traceback\n")
    summary = RunDirectory(tmp_path / "run").read_summary()
    assert summary["status"] == "failed"
    assert "my_strategy.py" in "".join(summary["traceback"])


# Run directories


def test_a_stopped_run_resumes_exactly_if_its_flag_is_repeated_and_not_otherwise(user_code, tmp_path, capsys):
    assert run_command_line([*TRAIN, *MINE, "--run-dir", str(tmp_path / "unbroken")]) == 0
    run = str(tmp_path / "run")
    with stopping_at(70)():
        assert run_command_line([*TRAIN, *MINE, "--run-dir", run]) == 143
    user_code.forget()
    assert answer(["resume", run], capsys).strip().endswith("add --strategy-from my_strategy.Mine")
    assert "my_strategy" not in sys.modules
    assert run_command_line(["resume", run, *MINE, "--quiet"]) == 0
    metrics = [(tmp_path / name / "metrics.jsonl").read_bytes() for name in ("unbroken", "run")]
    assert metrics[0] == metrics[1]
    assert json.loads((tmp_path / "run/provenance.json").read_text())["exact"] is True


def test_a_run_resumed_with_changed_code_warns_that_it_is_no_longer_exact(user_code, tmp_path, capsys):
    run = str(tmp_path / "run")
    with stopping_at(70)():
        assert run_command_line([*TRAIN, *MINE, "--run-dir", run]) == 143
    user_code.forget()
    user_code.write("my_strategy", STRATEGY + "\n    # another thought")
    assert run_command_line(["resume", run, *MINE, "--quiet"]) == 0
    assert "my_strategy has changed since this run was started" in capsys.readouterr().err
    assert json.loads((tmp_path / "run/provenance.json").read_text())["exact"] is False


def test_a_finished_run_is_evaluated_and_inspected_with_its_flags_and_reported_without(user_code, tmp_path, capsys):
    run, page = str(tmp_path / "runs/one"), tmp_path / "page.html"
    assert run_command_line([*TRAIN, *MINE, "--run-dir", run]) == 0
    for command in (["evaluate", run, "--episodes", "1"], ["inspect", run, "--out", str(page)]):
        user_code.forget()
        assert "add --strategy-from my_strategy.Mine" in answer(command, capsys)
        assert not page.exists()
        answer([*command, *MINE], capsys, code=0)
    assert page.exists()
    user_code.forget()
    assert run_command_line(["report", str(tmp_path / "runs")]) == 0
    assert "mine" in (tmp_path / "runs/report.html").read_text()
    assert "my_strategy" not in sys.modules


def test_a_user_strategy_can_inspect_a_run_of_another_strategy(tmp_path, capsys):
    run, page = str(tmp_path / "run"), tmp_path / "page.html"
    assert run_command_line([*TRAIN, "--run-dir", run]) == 0
    answer(["inspect", run, *MINE, "--strategy", "mine:scale=9", "--out", str(page)], capsys, code=0)
    assert "mine:scale=9" in page.read_text()


def test_a_user_environment_is_trained_in_and_every_flag_to_repeat_is_named_at_once(user_code, tmp_path, capsys):
    run = str(tmp_path / "run")
    with stopping_at(40)():
        assert run_command_line([*GYM, *LAKE, *MINE, "--run-dir", run]) == 143
    expected = f"bootdqn resume {run} --strategy-from my_strategy.Mine --import my_lake resumes it"
    assert expected in capsys.readouterr().err.splitlines()
    assert config_of(tmp_path / "run")["imports"] == ["my_lake"]
    user_code.forget()
    for command in ("resume", "evaluate", "inspect"):
        output = answer([command, run], capsys)
        assert output.strip().endswith("add --import my_lake --strategy-from my_strategy.Mine")
        assert "add --import my_lake\n" in answer([command, run, *MINE], capsys)
        user_code.forget()
    for command in (["resume", run, "--quiet"], ["evaluate", run, "--episodes", "1"]):
        answer([*command, *LAKE, *MINE], capsys, code=0)
        user_code.forget()


# Many runs


def test_a_sweep_mixes_strategies_and_its_workers_import_the_given_modules(user_code, tmp_path):
    (tmp_path / "compare.toml").write_text(
        "[base]\nenvironment = 'deep-sea'\nsize = 4\nmax_episodes = 20\nnum_heads = 4\nhidden_sizes = [8, 8]\n"
        "[axes]\nseed = [0]\nstrategy = ['greedy', 'mine', 'mine:scale=2']\n"
    )
    out = tmp_path / "out"
    assert run_command_line(["sweep", "compare.toml", *MINE, "--out", str(out), "--workers", "1"]) == 0
    class_paths = {
        path: config_of(out / path / "seed-0")["strategy_from"] for path in ("greedy", "mine", "mine-scale-2.0")
    }
    assert list(class_paths.values()) == [None, "my_strategy.Mine", "my_strategy.Mine"]
    for name in ("mine", "mine-scale-2.0"):
        from bootdqn.training.run import train_run

        train_run(from_flat(config_of(out / name / "seed-0")), tmp_path / "alone" / name)
        alone, pooled = (tmp_path / "alone" / name, out / name / "seed-0")
        assert (alone / "metrics.jsonl").read_bytes() == (pooled / "metrics.jsonl").read_bytes()
    user_code.forget()
    assert run_command_line(["report", str(out)]) == 0


def test_a_dry_run_measures_a_user_strategy_separately(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bootdqn.sweeps.cost.PROBE_SECONDS", 0.05)
    (tmp_path / "compare.toml").write_text(
        "[base]\nenvironment = 'deep-sea'\nsize = 3\nmax_episodes = 7\n[axes]\nstrategy = ['gain', 'evoi', 'mine']\n"
    )
    from bootdqn.sweeps import cost

    tried = []
    monkeypatch.setattr(
        cost,
        "_probe",
        lambda config, seconds, before=cost._probe: tried.append(config) or before(config, seconds),
    )
    output = answer(["sweep", "compare.toml", *MINE, "--dry-run"], capsys, code=0)
    assert output.count(" 21 ") == 3
    assert [config.actor.strategy for config in tried] == ["gain", "mine"]


def test_a_sweep_over_user_environments_records_the_import(user_code, tmp_path, capsys):
    (tmp_path / "lake.toml").write_text(
        "[base]\nenvironment = 'gym'\nenv_id = 'Mine-v0'\ntotal_steps = 50\nlearning_starts = 20\n"
        "hidden_sizes = [8]\n[axes]\nseed = [0]\n"
    )
    command = ["sweep", "lake.toml", "--out", "out", "--workers", "1", "--retries", "0"]
    assert run_command_line([*command, *LAKE]) == 0
    assert config_of(tmp_path / "out/seed-0")["imports"] == ["my_lake"]
    user_code.forget()
    assert "add --import my_lake" in answer([*command, "imports=['my_lake']"], capsys)
    assert "write --import my_lake --env-id Mine-v0" in answer([*command, "env_id=my_lake:Mine-v0"], capsys)
    assert "my_lake" not in sys.modules


def test_code_that_is_missing_when_a_worker_needs_it_is_reported_for_each_run(user_code, tmp_path, capsys):
    (tmp_path / "one.toml").write_text("[base]\nenvironment = 'deep-sea'\nstrategy = 'mine'\nsize = 3\n")
    user_code.load_strategy("my_strategy.Mine")
    (tmp_path / "my_strategy.py").unlink()
    output = answer(["sweep", "one.toml", "--workers", "1", "--retries", "0"], capsys, code=1)
    assert "UsageError: --strategy-from my_strategy.Mine: no module 'my_strategy' is installed" in output


def test_the_demo_compares_a_user_strategy_too(capsys):
    arguments = ["demo", "--strategies", "greedy", "--sizes", "3", "--num-seeds", "1", "--max-episodes", "5", *MINE]
    output = answer([*arguments, "--workers", "1"], capsys, code=0)
    assert output.startswith("2 runs on DeepSea")
    assert "mine" in output


# Files that mean harm

EVIL = """
    import pathlib

    pathlib.Path("marker").touch()
"""
HOSTILE = {
    "strategy_from": {"environment": "deep-sea", "size": 3, "strategy": "evil", "strategy_from": "evil.Evil"},
    "strategy_from alone": {"environment": "deep-sea", "size": 3, "strategy_from": "evil.Evil"},
    "strategy": {"environment": "deep-sea", "size": 3, "strategy": "evil.Evil"},
    "imports": {"environment": "gym", "env_id": "CartPole-v1", "imports": ["evil"]},
    "imports as text": {"environment": "gym", "env_id": "CartPole-v1", "imports": "evil"},
    "imports of nonsense": {"environment": "gym", "env_id": "CartPole-v1", "imports": [["evil"], {"evil": 1}]},
    "env_id": {"environment": "gym", "env_id": "evil:CartPole-v1"},
    "env_id and imports": {"environment": "gym", "env_id": "evil:CartPole-v1", "imports": []},
    "env_id within a namespace": {"environment": "gym", "env_id": "evil:evil/CartPole-v1"},
    "env_id with two modules": {"environment": "gym", "env_id": "my_lake:evil:CartPole-v1"},
    "game": {"environment": "atari", "game": "evil:Pong"},
    "a path": {"environment": "deep-sea", "strategy_from": "../evil.Evil"},
    "a command": {"environment": "deep-sea", "strategy_from": "evil.Evil; touch marker\x1b[2J\n"},
}


@pytest.mark.parametrize("config", HOSTILE.values(), ids=HOSTILE)
def test_a_file_imports_nothing_by_itself(user_code, config, tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    user_code.write("evil", EVIL)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/config.json").write_text(json.dumps(config))
    (tmp_path / "sweep.toml").write_text(
        "".join(f"base.{name} = {json.dumps(value)}\n" for name, value in config.items())
    )
    commands = [["resume", "run"], ["evaluate", "run"], ["inspect", "run"], ["sweep", "sweep.toml", "--workers", "1"]]
    commands += [["sweep", "sweep.toml", "--dry-run"], [*TRAIN, "--run-dir", "run"], ["report", "."]]
    for command in commands:
        assert run_command_line(command) == (0 if command[0] == "report" else 2), command
        output = capsys.readouterr().err
        assert "Traceback" not in output
        assert "\x1b" not in output
        assert len(output.strip().splitlines()) <= 2
    assert "evil" not in sys.modules
    assert not (tmp_path / "marker").exists()


def test_these_tests_would_detect_an_import(user_code, tmp_path):
    user_code.write("evil", EVIL)
    user_code.import_environments("evil")
    assert (tmp_path / "marker").exists()


@pytest.mark.parametrize(
    "flat",
    [
        {"environment": "gym", "env_id": "CartPole-v1", "imports": ["my_lake"]},
        {"environment": "gym", "env_id": "CartPole-v1"},
    ],
)
def test_a_configuration_survives_json_where_its_code_is_there(user_code, flat):
    user_code.import_environments("my_lake")
    assert to_flat(from_flat(json.loads(json.dumps(to_flat(from_flat(flat)))))) == to_flat(from_flat(flat))
    user_code.forget()
    with contextlib.ExitStack() as stack:
        if flat.get("imports"):
            stack.enter_context(pytest.raises(ValueError, match="add --import my_lake"))
        from_flat(flat)
