"""The command line: its help, its output and its errors."""

import re
import subprocess
import sys
import tomllib

import pytest

from bootdqn.__main__ import main
from bootdqn.cli.main import parse, run_command_line
from bootdqn.common.errors import TrainingError
from bootdqn.config.defaults import DEEP_SEA
from bootdqn.config.settings import to_flat
from bootdqn.training.evaluation import Evaluation, RunEvaluation
from reference.documents import ROOT
from reference.run_directories import write_deep_sea

TRAIN = ["train", "deep-sea"]


def test_every_setting_is_a_flag_with_its_explanation(capsys):
    assert run_command_line([*TRAIN, "--help"]) == 0
    text = capsys.readouterr().out
    for key in to_flat(DEEP_SEA):
        if key != "environment":
            assert f"--{key.replace('_', '-')}" in text
    for name in ("--run-dir", "--quiet"):
        assert name in text


@pytest.mark.parametrize(("environment", "flag"), [("atari", "--game STR"), ("gym", "--env-id STR")])
def test_help_lists_the_required_arguments(environment, flag, capsys):
    assert run_command_line(["train", environment, "--help"]) == 0
    flags = capsys.readouterr().out.split(flag)[1].split("--")[0]
    assert "(required)" in flags


def test_required_arguments_may_be_written_in_several_ways():
    assert parse(["train", "atari", "--game=pong"]).config.env.game == "Pong"
    assert parse(["train", "gym", "--env_id", "Acrobot-v1"]).config.env.env_id == "Acrobot-v1"


@pytest.mark.parametrize("arguments", [[], ["--help"], ["train"], ["train", "-h"], ["demo", "--help"]])
def test_help_is_available_at_every_level(arguments, capsys):
    assert run_command_line(arguments) == 0
    assert "usage: bootdqn" in capsys.readouterr().out


def test_help_does_not_wait_for_pytorch():
    code = "import sys; from bootdqn.cli.main import run_command_line as r; r(['train', 'deep-sea', '--help'])\n"
    code += "assert not {'torch', 'numba', 'matplotlib', 'scipy'} & set(sys.modules), 'imported too early'"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_flags_become_the_configuration():
    flags = (
        "--size 20 --strategy gain:scale=5 --seed 3 --no-stop-when-solved --num-heads 7 --batch-size 64 "
        "--learning-rate 0.01 --discount 0.9 --mask-probability 1.0 --replay-capacity 500 --learning-starts 50 "
        "--update-every 2 --target-every 9 --device cuda:1 --threads 2 --mapping-seed 42 --hidden-sizes 16 8"
    )
    command = parse([*TRAIN, *flags.split()])
    expected = to_flat(DEEP_SEA) | {
        "size": 20,
        "strategy": "gain:scale=5.0",
        "seed": 3,
        "stop_when_solved": False,
        "num_heads": 7,
        "batch_size": 64,
        "learning_rate": 0.01,
        "discount": 0.9,
        "mask_probability": 1.0,
        "replay_capacity": 500,
        "learning_starts": 50,
        "update_every": 2,
        "target_every": 9,
        "device": "cuda:1",
        "threads": 2,
        "mapping_seed": 42,
        "hidden_sizes": [16, 8],
    }
    assert to_flat(command.config) == expected


def test_the_version_is_printed(capsys):
    assert run_command_line(["--version"]) == 0
    assert capsys.readouterr().out.startswith("bootdqn 0.")


@pytest.mark.parametrize("damage", ["{", "[]", '{"environment": "moon"}', '{"environment": "deep-sea", "sise": 3}'])
def test_a_damaged_run_directory_is_an_error_in_one_line_without_a_traceback(damage, tmp_path, capsys):
    (tmp_path / "config.json").write_text(damage)
    for arguments in (["evaluate", str(tmp_path)], [*TRAIN, "--run-dir", str(tmp_path)]):
        assert run_command_line(arguments) == 2
        captured = capsys.readouterr().err
        assert str(tmp_path) in captured
        assert "Traceback" not in captured


def test_a_run_directory_below_a_file_is_an_error_in_one_line_without_a_traceback(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert run_command_line([*TRAIN, "--run-dir", str(tmp_path / "file/run")]) == 2
    assert run_command_line(["demo", "--out", str(tmp_path / "file")]) == 2
    assert "is a file; choose a directory" in capsys.readouterr().err


def test_a_loss_that_explodes_names_the_remedy(tmp_path, capsys):
    arguments = ["--size", "3", "--learning-rate", "1e30", "--run-dir", str(tmp_path / "run")]
    assert run_command_line([*TRAIN, *arguments]) == 1
    message = capsys.readouterr().err
    assert "lower --learning-rate" in message
    assert "of head " in message


def test_a_run_prints_how_it_ended_and_a_second_call_that_it_is_already_finished(tmp_path, capsys):
    arguments = [*TRAIN, "--size", "3", "--max-episodes", "5", "--run-dir", str(tmp_path / "run")]
    assert run_command_line(arguments) == 0
    assert "finished, not solved in 5 episodes" in capsys.readouterr().out
    assert run_command_line(arguments) == 0
    assert "already finished" in capsys.readouterr().out
    assert run_command_line([*arguments, "--seed", "1"]) == 2
    assert "mapping_seed: 0 there, 1 here, seed: 0 there, 1 here" in capsys.readouterr().err


def test_an_evaluation_uses_the_settings_of_the_run_unless_flags_override_them(tmp_path, capsys):
    small = "--size 3 --max-episodes 5 --num-heads 3 --vote copeland --eval-episodes 2 --quiet --run-dir"
    assert run_command_line([*TRAIN, *small.split(), str(tmp_path / "run")]) == 0
    capsys.readouterr()
    assert run_command_line(["evaluate", str(tmp_path / "run")]) == 0
    printed = capsys.readouterr().out
    assert "copeland vote of the heads" in printed
    assert "over 2 episodes" in printed
    assert run_command_line(["evaluate", str(tmp_path / "run"), "--vote", "mean", "--episodes", "4"]) == 0
    printed = capsys.readouterr().out
    assert "mean vote of the heads" in printed
    assert "over 4 episodes" in printed


def test_small_returns_are_printed_with_significant_digits(tmp_path, capsys, monkeypatch):
    returns = [-0.005, -0.0075, -0.005]
    found = Evaluation(returns, [10, 10, 10], cut=False, diversity={})
    monkeypatch.setattr(
        "bootdqn.training.evaluation.evaluate_saved_run", lambda *_, **__: RunEvaluation(found, 30, "plurality")
    )
    assert run_command_line(["evaluate", str(tmp_path)]) == 0
    assert "mean return -0.005833 over 3 episodes\n" in capsys.readouterr().out


def test_without_a_run_directory_one_is_chosen_under_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run_command_line([*TRAIN, "--size", "3", "--max-episodes", "2", "--strategy", "greedy"]) == 0
    assert (tmp_path / "runs/deep-sea-3-greedy-seed0/summary.json").exists()
    assert "runs/deep-sea-3-greedy-seed0" in capsys.readouterr().out


def test_an_unsupported_engine_is_a_usage_error(tmp_path, capsys):
    arguments = [*TRAIN, "--engine", "compiled", "--hidden-sizes", "8", "--run-dir", str(tmp_path / "run")]
    assert run_command_line(arguments) == 2
    assert "with --ensemble independent, two --hidden-sizes on discrete observations" in capsys.readouterr().err


def test_a_missing_device_is_a_usage_error(tmp_path, capsys):
    import torch

    device = f"cuda:{torch.cuda.device_count()}"
    assert run_command_line([*TRAIN, "--device", device, "--run-dir", str(tmp_path / "run")]) == 2
    assert "--device" in capsys.readouterr().err


def test_a_report_names_its_page_and_the_directory_of_its_files(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bootdqn.reports.report.write_report", lambda _run_dir, out, _baseline: out)
    assert run_command_line(["report", str(tmp_path)]) == 0
    page, files = tmp_path / "report.html", tmp_path / "report_files"
    assert capsys.readouterr().out == f"Open {page} in a browser; its figures and tables are in {files}.\n"


def test_the_demo_has_its_report_even_if_the_inspector_fails(tmp_path, capsys, monkeypatch):
    def fails(*_, **__):
        raise TrainingError("the strategy raised ZeroDivisionError: boom")

    monkeypatch.setattr("bootdqn.inspector.page.inspect_run", fails)
    arguments = ["demo", "--out", str(tmp_path), "--sizes", "6", "--num-seeds", "1", "--max-episodes", "30"]
    assert run_command_line([*arguments, "--strategies", "greedy", "--workers", "1"]) == 0
    printed = capsys.readouterr().out
    assert "The inspector's page was not written: the strategy raised ZeroDivisionError: boom" in printed
    assert printed.endswith(f"Open {tmp_path / 'report.html'} in a browser.\n")
    assert (tmp_path / "report.html").exists()


def test_the_demo_inspects_an_agent_that_still_explores(tmp_path, capsys):
    arguments = ["demo", "--out", str(tmp_path), "--num-seeds", "1", "--strategies", "evoi:reduce=sum"]
    assert run_command_line([*arguments, "--workers", "1"]) == 0
    (changed,) = re.findall(r"(\d+) of them changed", " ".join(capsys.readouterr().out.split()))
    assert int(changed) > 0


def test_a_demo_with_other_settings_in_its_directory_fails_without_a_table_or_a_promise(tmp_path, capsys):
    arguments = ["demo", "--out", str(tmp_path), "--sizes", "3", "--num-seeds", "1", "--strategies", "greedy"]
    assert run_command_line([*arguments, "--workers", "1", "--max-episodes", "12"]) == 0
    capsys.readouterr()
    assert run_command_line([*arguments, "--workers", "1", "--max-episodes", "30"]) == 1
    printed = capsys.readouterr()
    assert "report.html" not in printed.out
    assert "is finished (max_episodes 12)" in printed.err
    assert "resumes" not in printed.err


def test_the_demo_ends_by_naming_the_page(tmp_path, capsys):
    out = tmp_path / "demo"
    arguments = ["demo", "--out", str(out), "--sizes", "3", "4", "--num-seeds", "2", "--max-episodes", "30"]
    assert run_command_line([*arguments, "--strategies", "greedy", "evoi:reduce=sum", "--workers", "2"]) == 0
    printed = capsys.readouterr().out
    assert "BootDQN-EVOI" in printed
    assert "".join(printed.split()).endswith("report.htmlinabrowser.")
    page = (out / "report.html").read_text()
    assert "<svg" in page
    assert "DeepSea, at most 30 episodes" in page
    assert len(list(out.rglob("summary.json"))) == 8
    fewer = ["demo", "--out", str(out), "--sizes", "3", "--num-seeds", "1", "--max-episodes", "30"]
    assert run_command_line([*fewer, "--strategies", "greedy", "greedy", "--workers", "2"]) == 0
    assert capsys.readouterr().out.startswith("1 run on DeepSea")


@pytest.mark.parametrize(
    ("error", "remedies"),
    [
        (MemoryError("Unable to allocate 7.28 PiB"), ["--replay-capacity", "--batch-size", "--hidden-sizes", "--size"]),
        (RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory"), ["--batch-size"]),
        ("CUDA out of memory. Tried to allocate 20.00 GiB.\nGPU 0 has ...", ["--batch-size", "--device cpu"]),
    ],
)
def test_a_lack_of_memory_is_reported_with_the_flags_that_reduce_it(error, remedies, capsys, monkeypatch, tmp_path):
    import torch

    def fail(*_args, **_options):
        raise torch.OutOfMemoryError(error) if isinstance(error, str) else error

    monkeypatch.setattr("bootdqn.training.run.make_components", fail)
    assert run_command_line([*TRAIN, "--run-dir", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err
    assert message.startswith("bootdqn: not enough memory (")
    assert message.count("\n") == 1
    assert all(remedy in message for remedy in remedies)


def test_an_error_of_another_kind_keeps_its_traceback(monkeypatch, tmp_path):
    def fail(*_args, **_options):
        raise RuntimeError("shapes do not fit")

    monkeypatch.setattr("bootdqn.training.run.make_components", fail)
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        run_command_line([*TRAIN, "--run-dir", str(tmp_path / "run")])


@pytest.mark.parametrize(
    ("command", "doing"),
    [("evaluate", "training.evaluation.evaluate_saved_run"), ("inspect", "inspector.page.inspect_run")],
)
def test_an_interrupted_command_reports_it_in_one_line(command, doing, capsys, monkeypatch):
    def interrupted(*_args, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(f"bootdqn.{doing}", interrupted)
    assert run_command_line([command, "run"]) == 130
    assert capsys.readouterr().err == "bootdqn: interrupted\n"


def test_an_interrupt_while_the_command_line_loads_is_one_line_without_a_traceback(capsys, monkeypatch):
    class Interrupting:
        @staticmethod
        def find_spec(name, *_):
            if name == "bootdqn.cli.main":
                raise KeyboardInterrupt

    monkeypatch.delitem(sys.modules, "bootdqn.cli.main")
    monkeypatch.setattr(sys, "meta_path", [Interrupting, *sys.meta_path])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "bootdqn: interrupted\n"


def test_the_installed_command_starts_there():
    with (ROOT / "pyproject.toml").open("rb") as file:
        assert tomllib.load(file)["project"]["scripts"] == {"bootdqn": f"{main.__module__}:{main.__name__}"}


@pytest.mark.parametrize("command", ["evaluate", "inspect", "resume"])
def test_an_error_about_a_directory_of_runs_lists_them(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    for seed in range(6):
        write_deep_sea(tmp_path / f"study/gain/seed-{seed}", seed=seed)
    message = "is not a run directory: it has no config.json; choose one of those in it: study/gain/seed-0"
    for root in (".", "study", "study/gain"):
        assert run_command_line([command, root]) == 2
        error = capsys.readouterr().err
        assert message in error
        assert error.endswith("study/gain/seed-2, study/gain/seed-3 and 2 more\n")
    assert run_command_line([command, "study/gain/sed-4"]) == 2
    assert capsys.readouterr().err == ("bootdqn: study/gain/sed-4 does not exist; did you mean 'study/gain/seed-4'?\n")
