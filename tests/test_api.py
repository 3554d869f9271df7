"""Training, loading and evaluating from Python: the same as by the command line, and no PyTorch before it is needed."""

import dataclasses
import html
import inspect
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import bootdqn
from bootdqn.cli.evaluate import EvaluateCommand, InspectCommand
from bootdqn.cli.main import run_command_line
from bootdqn.cli.report import ReportCommand
from bootdqn.cli.sweep import SweepCommand
from bootdqn.cli.train import TrainCommand
from bootdqn.common.errors import UsageError
from bootdqn.config.defaults import DEEP_SEA
from bootdqn.config.settings import from_flat
from bootdqn.config.train import budget_warnings, resolve
from bootdqn.envs.deep_sea import DeepSea
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.weights import load_ensemble
from bootdqn.training.callbacks import Progress
from bootdqn.training.display import progress_line
from reference.user_code import STRATEGY

SETTINGS = {"environment": "deep-sea", "update_every": 1, "size": 3, "max_episodes": 60, "num_heads": 4, "seed": 2}


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    path = tmp_path_factory.mktemp("api") / "run"
    bootdqn.train(SETTINGS, path)
    return path


def test_importing_the_package_does_not_import_pytorch():
    code = "import sys, bootdqn; assert not {'torch', 'numba', 'matplotlib', 'scipy', 'jax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_training_gives_the_bytes_that_the_command_line_gives(directory, tmp_path):
    flags = "--size 3 --update-every 1 --max-episodes 60 --num-heads 4 --seed 2 --quiet --run-dir"
    assert run_command_line(["train", "deep-sea", *flags.split(), str(tmp_path / "run")]) == 0
    ours, theirs = RunDirectory(directory), RunDirectory(tmp_path / "run")
    for file in ("config", "metrics", "weights"):
        assert getattr(ours, file).read_bytes() == getattr(theirs, file).read_bytes()


def test_settings_may_be_objects_and_numbers_of_numpy(directory):
    natural = {
        "size": np.int64(3),
        "update_every": np.int64(1),
        "max_episodes": np.uint16(60),
        "num_heads": np.int32(4),
        "seed": np.array(2),
    }
    natural |= {"discount": np.float64(0.99), "hidden_sizes": np.array([50, 50]), "double_q": np.True_}
    natural |= {"strategy": bootdqn.Evoi(reduce="sum")}
    assert bootdqn.train({"environment": "deep-sea"} | natural, directory) == RunDirectory(directory).read_summary()


def flat_of(settings):
    """Return the configuration that `train` would follow, without training."""
    from bootdqn.config.settings import to_flat
    from bootdqn.training import run

    seen = []
    with pytest.MonkeyPatch.context() as patch:
        finished = run.RunExit({"status": "finished"}, 0)
        patch.setattr(run, "train_run", lambda config, *_, **__: seen.append(config) or finished)
        bootdqn.train(settings, "nowhere")
    return to_flat(*seen)


def test_options_of_an_environment_may_be_a_mapping():
    options = {
        "is_slippery": False,
        "map_name": "8x8",
        "desc": None,
        "size": np.int64(3),
        "word": "1",
        "ends": (1, 2.5),
    }
    flat = flat_of({"environment": "gym", "env_id": "FrozenLake-v1", "env_options": options})
    from bootdqn.config.envs import GymConfig

    assert GymConfig(env_options=tuple(flat["env_options"])).options == options | {"ends": [1, 2.5]}
    with pytest.raises(ValueError, match="cannot be written as text"):
        bootdqn.train({"environment": "gym", "env_id": "FrozenLake-v1", "env_options": {"a": {"b": 1}}}, "nowhere")


def test_a_strategy_may_be_an_object_of_a_registered_user_class(user_code):
    user_code.write("my_strategy", STRATEGY)
    mine = user_code.load_strategy("my_strategy.Mine")
    flat = flat_of({"environment": "deep-sea", "strategy": mine(scale=2.0)})
    assert (flat["strategy"], flat["strategy_from"]) == ("mine:scale=2.0", "my_strategy.Mine")
    user_code.forget()
    with pytest.raises(ValueError, match=r"Mine is not known yet: write @bootdqn.register_strategy above it"):
        bootdqn.train({"environment": "deep-sea", "strategy": mine()}, "nowhere")
    for wrong, message in ((mine, r"a class; write Mine\(\)"), (3, "must be a text, got 3"), (None, "must be a text")):
        with pytest.raises(ValueError, match=message):
            bootdqn.train({"environment": "deep-sea", "strategy": wrong}, "nowhere")


def test_a_finished_run_is_unchanged(directory):
    before = RunDirectory(directory).metrics.stat().st_mtime_ns
    assert bootdqn.train(SETTINGS, str(directory)) == RunDirectory(directory).read_summary()
    assert RunDirectory(directory).metrics.stat().st_mtime_ns == before


def test_loaded_q_values_are_those_of_the_networks_one_head_at_a_time(directory):
    import safetensors.torch

    trained = bootdqn.load_run(str(directory))
    weights = safetensors.torch.load_file(RunDirectory(directory).weights)
    assert trained.config == RunDirectory(directory).read_config()
    assert trained.step == RunDirectory(directory).read_summary()["steps"]
    assert sum(value.numel() for value in weights.values()) == 4 * (9 * 50 + 50 + 50 * 50 + 50 + 50 * 2 + 2)
    q = trained.q_values(np.arange(9))
    assert q.shape == (9, 4, 2)
    np.testing.assert_allclose(q, by_hand(weights), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("observations", [[-1], [9], 3, [0.0], [[0]]], ids=str)
def test_q_values_are_of_observations_of_the_environment_only(directory, observations):
    with pytest.raises(ValueError, match=r"observations must be int64 of shape \(B,\)"):
        bootdqn.load_run(directory).q_values(observations)


def by_hand(weights):
    """Return Q-values (9, 4, 2) of all cells from matrices (K, in, out) and biases (K, out)."""
    heads = []
    for head in range(4):
        hidden = torch.eye(9)
        matrices = [value[head] for value in weights.values() if value.ndim == 3]
        biases = [value[head] for value in weights.values() if value.ndim == 2]
        for number, (matrix, bias) in enumerate(zip(matrices, biases, strict=True)):
            hidden = hidden @ matrix + bias
            hidden = hidden.relu() if number < len(matrices) - 1 else hidden
        heads.append(hidden)
    return torch.stack(heads, dim=1).numpy()


def test_evaluation_is_the_vote_of_the_loaded_heads(directory):
    trained = bootdqn.load_run(directory)
    found = bootdqn.evaluate(directory, episodes=2)
    env = DeepSea(size=3, mapping_seed=2)
    observation, _ = env.reset()
    total, over = 0.0, False
    while not over:
        action = int(bootdqn.vote(trained.q_values(np.array([observation])))[0])
        observation, reward, over, _, _ = env.step(action)
        total += reward
    assert found.returns == pytest.approx([total, total])


@pytest.fixture(scope="module")
def with_snapshots(tmp_path_factory):
    path = tmp_path_factory.mktemp("snapshots") / "run"
    bootdqn.train(SETTINGS | {"snapshot_every": 60, "stop_when_solved": False}, path)
    return path


def test_a_snapshot_is_loaded_by_its_step(with_snapshots):
    last, first = bootdqn.load_run(with_snapshots), bootdqn.load_run(with_snapshots, weights=np.int64(60))
    assert (first.step, last.step) == (60, 180)
    cells = np.arange(9)
    assert not np.array_equal(first.q_values(cells), last.q_values(cells))
    np.testing.assert_array_equal(bootdqn.load_run(with_snapshots, weights=180).q_values(cells), last.q_values(cells))


def test_a_snapshot_is_evaluated_by_its_step_or_its_file(with_snapshots, capsys, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "bootdqn.runs.weights.load_ensemble", lambda path, *rest: seen.append(path) or load_ensemble(path, *rest)
    )
    file = RunDirectory(with_snapshots).snapshots / "step-000000000060.safetensors"
    bootdqn.evaluate(with_snapshots, weights=60, episodes=1)
    for weights in ("60", str(file)):
        command = ["evaluate", str(with_snapshots), "--weights", weights, "--episodes", "1"]
        assert run_command_line(command) == 0
        assert "weights after 60 steps" in capsys.readouterr().out
    assert seen == [file] * 3


def test_a_directory_that_holds_no_run_is_reported_as_such_by_every_function(tmp_path):
    for function in (bootdqn.load_run, bootdqn.evaluate):
        with pytest.raises(UsageError, match="nowhere does not exist"):
            function(tmp_path / "nowhere", weights=5)


def test_a_missing_snapshot_is_an_error_that_lists_the_existing_ones(with_snapshots, directory, capsys):
    for function in (bootdqn.load_run, bootdqn.evaluate):
        for step in (61, -1, 0):
            with pytest.raises(UsageError, match=f"weights {step} of .*: no snapshot after .* there are 60, 120, 180$"):
                function(with_snapshots, weights=step)
        with pytest.raises(UsageError, match="there are none: train with --snapshot-every"):
            function(directory, weights=60)
    assert run_command_line(["evaluate", str(with_snapshots), "--weights", "61"]) == 2
    assert "no such file, and no snapshot after that step; there are 60, 120, 180" in capsys.readouterr().err


def test_errors_name_what_to_write(tmp_path):
    with pytest.raises(ValueError, match="did you mean 'size'"):
        bootdqn.train({"environment": "deep-sea", "sise": 3}, tmp_path / "run")
    with pytest.raises(ValueError, match="environment is missing: one of deep-sea, atari, minatar, gym, bsuite"):
        bootdqn.train({"size": 3}, tmp_path / "run")
    with pytest.raises(ValueError, match="the environment gym needs env_id"):
        bootdqn.train({"environment": "gym"}, tmp_path / "run")
    for function in (bootdqn.load_run, bootdqn.evaluate):
        with pytest.raises(UsageError, match="nowhere does not exist"):
            function(tmp_path / "nowhere")
    assert not list(tmp_path.iterdir())


def test_an_evaluation_without_episodes_or_steps_is_an_error(directory):
    for name, nothing in (("episodes", 0), ("max_steps", 0), ("seed", -1)):
        with pytest.raises(ValueError, match=f"^{name} must"):
            bootdqn.evaluate(directory, **{name: nothing})


def test_errors_about_run_directories_and_user_code_do_not_mention_flags_alone(directory, user_code):
    with pytest.raises(UsageError, match=r"holds another configuration .*; choose another run directory$"):
        bootdqn.train(SETTINGS | {"seed": 3}, directory)
    user_code.write("my_strategy", STRATEGY)
    user_code.load_strategy("my_strategy.Mine")
    bootdqn.train(SETTINGS | {"max_episodes": 1, "strategy": "mine"}, "run")
    user_code.forget()
    with pytest.raises(
        UsageError, match="in Python import and register it first, on the command line add --strategy-from"
    ):
        bootdqn.load_run("run")


def test_how_the_heads_vote_is_called_vote_and_checked_before_anything_is_played(directory):
    with pytest.raises(ValueError, match=r"^vote must be one of plurality, mean, .*; got 'majority'$"):
        bootdqn.evaluate(directory, vote="majority")
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("bootdqn.training.evaluation.vote", lambda q, rule: seen.append(rule) or bootdqn.vote(q, rule))
        bootdqn.evaluate(directory, episodes=1, vote="borda")
    assert set(seen) == {"borda"}


def test_ctrl_c_ends_the_training_loop_and_the_same_call_resumes(tmp_path):
    settings = SETTINGS | {"size": 8, "max_episodes": 400}
    program = f"""
import bootdqn, threading, time, os, signal
def interrupt():
    while not os.path.exists({str(tmp_path / "0" / "checkpoints")!r}):
        time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt, daemon=True).start()
for seed in range(2):
    bootdqn.train({settings!r} | {{"seed": seed}}, {str(tmp_path)!r} + f"/{{seed}}")
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "KeyboardInterrupt" in ended.stderr
    assert ended.returncode != 0
    assert not (tmp_path / "1").exists()
    assert RunDirectory(tmp_path / "0").read_summary()["status"] == "interrupted"
    assert bootdqn.train(settings | {"seed": 0}, tmp_path / "0")["status"] == "finished"


def test_a_run_can_be_trained_outside_of_the_main_thread(tmp_path):
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(bootdqn.train, SETTINGS, tmp_path / "run").result()["status"] == "finished"


def test_a_problem_that_does_not_end_the_run_is_a_warning(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: False)
    with pytest.warns(UserWarning, match="emulates bf16"):
        bootdqn.train(SETTINGS | {"max_episodes": 2, "precision": "bf16"}, tmp_path / "run")


def test_a_strategy_of_a_script_is_warned_about_before_it_cannot_be_found_again(user_code, tmp_path, capsys):
    user_code.write("my_strategy", STRATEGY)
    mine = user_code.load_strategy("my_strategy.Mine")
    user_code.forget()
    bootdqn.register_strategy(mine, "__main__.Mine")
    with pytest.warns(UserWarning, match=r"__main__.Mine is a class of a script.* module \(a file of its own\)"):
        bootdqn.train(SETTINGS | {"max_episodes": 2, "strategy": "mine"}, tmp_path / "run")
    assert bootdqn.load_run(tmp_path / "run").config["strategy_from"] == "__main__.Mine"
    user_code.forget()
    assert run_command_line(["inspect", str(tmp_path / "run")]) == 2
    message = capsys.readouterr().err
    assert "__main__.Mine is a class of a script" in message
    assert "--strategy-from" not in message


@pytest.mark.parametrize("environment", [None, [("environment", "deep-sea")], 3])
def test_an_unknown_environment_is_an_error_with_the_call_to_write(tmp_path, environment):
    with pytest.raises(ValueError, match=r"must be a name or a mapping .*bootdqn.train\('deep-sea', size=10\); got"):
        bootdqn.train(environment, tmp_path / "run")


def flags_of(command, leave_out=()):
    """Return the names of a command's flags, those of its parts included."""
    names = set()
    for field in dataclasses.fields(command):
        default = getattr(command, field.name, None)
        if not isinstance(command, type) and field.name in leave_out:
            continue
        if field.default_factory is not dataclasses.MISSING and dataclasses.is_dataclass(field.default_factory):
            names |= flags_of(field.default_factory()) if field.name not in leave_out else set()
        elif dataclasses.is_dataclass(default):
            names |= flags_of(default)
        elif field.name not in leave_out:
            names.add(field.name)
    return names


@pytest.mark.parametrize(
    ("function", "command"),
    [
        (bootdqn.train, TrainCommand(DEEP_SEA)),
        (bootdqn.evaluate, EvaluateCommand),
        (bootdqn.sweep, SweepCommand),
        (bootdqn.report, ReportCommand),
        (bootdqn.inspect, InspectCommand),
    ],
)
def test_a_function_has_the_arguments_of_its_command(function, command):
    arguments = set(inspect.signature(function).parameters) - {"progress", "environment", "settings"}
    assert arguments == flags_of(command, leave_out=("config", "user_code", "quiet")) - {"quiet"}


def test_what_followed_from_a_setting_follows_again_when_that_is_changed(tmp_path):
    quick = {"max_episodes": 3, "num_heads": 2, "progress": False}
    bootdqn.train("deep-sea", tmp_path / "one", size=4, seed=3, target_every=7, **quick)
    config = json.loads((tmp_path / "one/config.json").read_text())
    assert (config["mapping_seed"], config["update_every"]) == (3, 4)
    bootdqn.train(config, tmp_path / "other", size=5, seed=8, progress=False)
    changed = json.loads((tmp_path / "other/config.json").read_text())
    expected = config | {"size": 5, "seed": 8, "mapping_seed": 8, "update_every": 5}
    assert changed == expected, "what was chosen, as target_every, stays"
    bootdqn.train(config | {"mapping_seed": 42}, tmp_path / "third", seed=8, progress=False)
    assert json.loads((tmp_path / "third/config.json").read_text())["mapping_seed"] == 42


@pytest.mark.parametrize(
    ("written", "changed", "kept"),
    [
        ({"environment": "deep-sea", "mapping_seed": 0}, {"seed": 2}, {"mapping_seed": 0}),
        ({"environment": "deep-sea", "mapping_seed": 0, "seed": 0}, {"seed": 2}, {"mapping_seed": 0}),
        ({"environment": "deep-sea", "update_every": 3, "size": 3}, {"size": 4}, {"update_every": 3}),
        ({"environment": "deep-sea", "update_every": 10}, {"size": 4}, {"update_every": 10}),
        ({"environment": "gym", "update_every": 4, "total_steps": 9}, {"env_id": "CartPole-v1"}, {"update_every": 4}),
    ],
)
def test_what_a_mapping_says_is_kept_though_it_would_follow_from_defaults(tmp_path, written, changed, kept):
    budget = {"max_episodes": 2} if written["environment"] == "deep-sea" else {}
    bootdqn.train(written, tmp_path / "run", num_heads=2, progress=False, **budget, **changed)
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert {name: config[name] for name in kept} == kept


@pytest.mark.parametrize("name", ["max_episodes", "mapping_seed"])
def test_a_setting_of_another_environment_is_an_error_in_a_mapping_with_changes(name):
    with pytest.raises(ValueError, match=f"unknown setting '{name}'"):
        bootdqn.train({"environment": "gym", "env_id": "CartPole-v1", name: 5}, seed=1, progress=False)


def test_another_preset_for_a_complete_configuration_is_an_error(tmp_path):
    bootdqn.train("deep-sea", tmp_path / "run", size=3, max_episodes=2, num_heads=2, progress=False)
    config = json.loads((tmp_path / "run/config.json").read_text())
    with pytest.raises(ValueError, match="preset 'explorer' sets nothing in a complete configuration"):
        bootdqn.train(config, tmp_path / "other", preset="explorer", progress=False)
    bootdqn.train(config, tmp_path / "same", preset="paper", seed=1, progress=False)


@pytest.mark.parametrize(
    ("settings", "flag"),
    [
        ({"environment": "atari", "game": "Pong", "total_frames": 400_000, "frame_skip": 1}, "frames"),
        ({"environment": "minatar", "game": "breakout", "total_steps": 20_000}, "steps"),
    ],
)
def test_a_budget_below_the_first_evaluation_is_warned_of_by_its_flag(settings, flag):
    (warning,) = budget_warnings(resolve(from_flat(settings)))
    assert f"that is due every --eval-every-{flag}" in warning
    assert not budget_warnings(resolve(from_flat(settings | {f"total_{flag}": 1_000_000})))


def test_a_run_too_short_to_learn_or_to_be_evaluated_says_so(tmp_path, capsys):
    bootdqn.train("gym", tmp_path / "short", env_id="CartPole-v1", total_steps=500, num_heads=2)
    shown = " ".join(capsys.readouterr().err.split())
    assert "nothing will be learned: the run ends after at most 500 steps" in shown
    assert "--learning-starts 1,000" in shown
    assert "will not be evaluated" in shown
    assert "--eval-every-steps 10,000" in shown


def test_keyword_arguments_are_settings(directory):
    settings = {name: value for name, value in SETTINGS.items() if name != "environment"}
    assert bootdqn.train("deep-sea", directory, **settings, progress=False) == bootdqn.train(SETTINGS, directory)
    with pytest.raises(ValueError, match="did you mean 'size'"):
        bootdqn.train("deep-sea", directory, sise=3)


def test_progress_is_shown_unless_it_is_silenced(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bootdqn.training.display.PLAIN_LINE_EVERY_SECONDS", 0.0)
    bootdqn.train(SETTINGS | {"max_episodes": 2}, tmp_path / "shown")
    assert "needs about" in capsys.readouterr().err
    bootdqn.evaluate(tmp_path / "shown", episodes=1)
    assert "episode 1 of at most 1" in capsys.readouterr().err
    bootdqn.train(SETTINGS | {"max_episodes": 2}, tmp_path / "silent", progress=False)
    bootdqn.evaluate(tmp_path / "shown", episodes=1, progress=False)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""


def test_progress_in_a_notebook_replaces_itself(tmp_path, monkeypatch):
    texts = []
    monkeypatch.setattr("bootdqn.training.display.notebook_area", lambda: texts.append)
    monkeypatch.setattr("bootdqn.training.display.NOTEBOOK_UPDATE_EVERY_SECONDS", 0.0)
    bootdqn.train(SETTINGS | {"max_episodes": 2}, tmp_path / "run")
    with progress_line("label") as callbacks:
        callbacks.show(Progress(0.5, "3 of 6 episodes", "9 steps/s", 61.0, "note"))
    assert texts == ["label: 3 of 6 episodes | at most 1m 01s left | 9 steps/s | note"]
    bootdqn.evaluate(tmp_path / "run", episodes=1)
    assert texts[-1] == f"{tmp_path / 'run'}: episode 1 of at most 1, 3 steps"


def test_results_show_themselves_in_a_notebook(directory, tmp_path):
    result = bootdqn.train(SETTINGS, directory)
    assert f"<code>{directory}</code>: finished" in result._repr_html_()
    assert "<th>mean return</th>" in bootdqn.evaluate(directory, episodes=1)._repr_html_()
    page = bootdqn.report(directory, out=tmp_path / "report.html")
    assert page.path == tmp_path / "report.html"
    assert html.escape(page.path.read_text()) in page._repr_html_()
    page = bootdqn.inspect(directory, out=tmp_path / "inspect.html", episodes=1)
    assert 'sandbox="allow-scripts"' in page._repr_html_()
    figure = bootdqn.inspect(directory, figure=tmp_path / "step.png", step=1)
    assert "data:image/png;base64," in figure._repr_html_()
    with pytest.raises(ValueError, match="`step` needs `figure`"):
        bootdqn.inspect(directory, step=1)


def test_a_run_is_inspected_by_a_strategy_that_is_an_object(directory, tmp_path):
    bootdqn.train(SETTINGS, directory)
    pages = [
        bootdqn.inspect(directory, strategy=strategy, out=tmp_path / "inspect.html").path.read_text()
        for strategy in (bootdqn.Gain(scale=2.0), "gain:scale=2.0", bootdqn.Greedy())
    ]
    assert pages[0] == pages[1] != pages[2]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: bootdqn.inspect("runs/first", episodes=0), "episodes must be at least 1, got 0"),
        (lambda: bootdqn.inspect("runs/first", max_steps=1.5), "max_steps must be a whole number, got 1.5"),
        (lambda: bootdqn.inspect("runs/first", seed=-1), "seed must be at least 0, got -1"),
        (lambda: bootdqn.sweep("paper-deepsea", workers=0), "workers must be at least 1, got 0"),
        (lambda: bootdqn.sweep("paper-deepsea", retries=-1), "retries must be at least 0, got -1"),
        (lambda: bootdqn.sweep("paper-deepsea", gpus_per_run=-1.0), "gpus_per_run must be at least 0, got -1.0"),
        (
            lambda: bootdqn.sweep("paper-deepsea", cluster="c.toml"),
            "`cluster` is a simulation, and needs `dry_run`; `ray` trains on a real cluster",
        ),
        (lambda: bootdqn.inspect("runs/first", figure="x.txt"), "figure must be a .png, .svg or .pdf file, got x.txt"),
        (lambda: bootdqn.inspect("runs/first", out="x.pdf"), "out must be an .html file, got x.pdf"),
        (lambda: bootdqn.inspect("runs/first", head=0.5), "head must be a whole number or None, got 0.5"),
        (
            lambda: bootdqn.inspect("runs/first", out="x.html", figure="x.png"),
            "`figure` is plotted instead of the page; leave out `out`, or `figure`",
        ),
        (lambda: bootdqn.evaluate("runs/first", video="x.avi"), "video must be an .mp4 or a .gif file, got x.avi"),
        (
            lambda: bootdqn.report("runs", watch=True, port=70000),
            "port must be between 0 and 65535, got 70000",
        ),
        (lambda: bootdqn.report("runs", port=80), "`port` needs `watch`"),
        (
            lambda: bootdqn.report("runs", watch=True, out="x.html"),
            "`watch` writes no page; leave out `out`, or `watch`",
        ),
        (bootdqn.report, "report needs a directory, as in bootdqn.report('runs/deepsea')"),
    ],
)
def test_an_argument_that_the_command_line_refuses_is_an_error(call, message):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        call()
    assert str(caught.value) == message


def test_a_sweep_returns_its_runs_and_what_failed(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[base]\nenvironment = "deep-sea"\nmax_episodes = 4\nsize = 3\n[axes]\nseed = [0]\n')
    result = bootdqn.sweep(path, {"seed": [0, 1], "size": 4}, out=tmp_path / "out", workers=1, progress=False)
    assert list(result.runs.run) == ["seed-0", "seed-1"]
    assert list(result.runs["size"]) == [4, 4]
    assert (result.out, result.failed) == (tmp_path / "out", {})
    assert "2 of 2 runs finished" in result._repr_html_()
    with pytest.raises(ValueError, match="`gpus_per_run` needs `ray`"):
        bootdqn.sweep(path, gpus_per_run=1.0)


def test_a_dry_run_trains_nothing(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("bootdqn.sweeps.cost.PROBE_SECONDS", 0.05)
    path = tmp_path / "mine.toml"
    path.write_text('[base]\nenvironment = "deep-sea"\nmax_episodes = 4\nsize = 3\n[axes]\nseed = [0]\n')
    assert bootdqn.sweep(path, out=tmp_path / "out", dry_run=True).runs.empty
    assert "1 run in" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()


def test_a_dry_run_warns_of_runs_that_cannot_be_trained(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[base]\nenvironment = "deep-sea"\nmax_episodes = 4\nsize = 3\n[axes]\nseed = [0]\n')
    other = tmp_path / "out" / "seed-0" / "notes.txt"
    other.parent.mkdir(parents=True)
    other.write_text("not a run")
    with pytest.warns(UserWarning, match="seed-0 is not a run directory"):
        bootdqn.sweep(path, out=tmp_path / "out", dry_run=True, progress=False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": bootdqn.Gain}, r"got a class; write Gain\(\)"),
        ({"strategy": 3}, "strategy must be a text or None, got 3"),
        ({"head": True}, "head must be a whole number or None, got True"),
        ({"step": 1.5, "figure": "x.png"}, "step must be a whole number or None"),
    ],
)
def test_inspect_refuses_what_the_command_line_refuses(tmp_path, arguments, message):
    with pytest.raises(ValueError, match=message):
        bootdqn.inspect(tmp_path, progress=False, **arguments)


def test_a_report_takes_a_label_as_its_baseline(tmp_path):
    with pytest.raises(ValueError, match="baseline must be a text or None, got 3"):
        bootdqn.report(tmp_path, baseline=3)
