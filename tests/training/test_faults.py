"""What goes wrong while a run trains: it stops, says why, and what it had reached is safe."""

import hashlib
import json
import signal
from contextlib import contextmanager

import gymnasium
import numpy as np
import pytest
import torch

from bootdqn.cli import run_command_line
from bootdqn.common.errors import DamagedFileError, TrainingError
from bootdqn.common.lock import locked
from bootdqn.common.run_folder import RunFolder
from bootdqn.common.tensors import read_tensors
from bootdqn.training import checkpoint, session
from bootdqn.training.checkpoint import Checkpoints
from bootdqn.training.config import SavingConfig, from_flat
from bootdqn.training.run import run
from reference.batches import random_batch
from reference.comparison import KINDS, copy_of_state

STEPS, LEARNING_STARTS, CHECKPOINT_EVERY = 200, 40, 48


class Walk(gymnasium.Env):
    """Ten places in a row. An episode begins in the middle and ends at either end; the right one pays."""

    observation_space = gymnasium.spaces.Discrete(10)
    action_space = gymnasium.spaces.Discrete(2)
    made = []  # noqa: RUF012 - one list for all

    def __init__(self):
        self.number, self.steps, self.resets = len(self.made), 0, 0
        self.made.append(self)

    def seen(self):
        return self.place

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed, options=options)
        self.place, self.resets = 4, self.resets + 1
        return self.disturbed_reset(self.seen()), {}

    def step(self, action):
        self.steps += 1
        slips = self.np_random.random() < 0.2
        self.place += 1 if bool(action) != slips else -1
        return self.disturbed_step(self.seen(), float(self.place == 9), self.place in (0, 9), False, {})

    def disturbed_reset(self, observation):
        return observation

    def disturbed_step(self, *outcome):
        return outcome


class WalkInNumbers(Walk):
    """The same, seen as three numbers."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,), np.float32)

    def seen(self):
        return np.float32([self.place / 9, 1 - self.place / 9, self.place == 4])


WALK, WALK_IN_NUMBERS = "bootdqn-test/Walk-v0", "bootdqn-test/WalkInNumbers-v0"
gymnasium.register(WALK, entry_point=Walk, disable_env_checker=True)
gymnasium.register(WALK_IN_NUMBERS, entry_point=WalkInNumbers, disable_env_checker=True)

SMALL = {
    "env_id": WALK,
    "seed": 3,
    "total_steps": STEPS,
    "num_heads": 3,
    "hidden_sizes": [8, 8],
    "ensemble": "independent",
    "engine": "fused",
    "loss": "squared",
    "batch_size": 16,
    "learning_starts": LEARNING_STARTS,
    "target_every": 20,
    "replay_capacity": 150,
    "eval_every_frames": None,
    "log_every": 10,
}
FUSED, AUTOGRAD = {}, {"engine": "autograd"}
SHARED = {"engine": "autograd", "env_id": WALK_IN_NUMBERS, "ensemble": "shared", "hidden_sizes": [8, 8, 8]}
LEARNERS = {"fused": FUSED, "autograd": AUTOGRAD, "shared": SHARED}


@pytest.fixture(params=["fused", "autograd"])
def learner(request):
    return LEARNERS[request.param]


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """Return a function that tells what comes out of a run with these settings that nothing happens to."""
    known = {}

    def results_of_an_unbroken_run(settings):
        key = json.dumps(settings)
        if key not in known:
            path = tmp_path_factory.mktemp("unbroken")
            train(settings, path)
            known[key] = results(path)
        return known[key]

    return results_of_an_unbroken_run


@pytest.fixture
def path(tmp_path):
    return tmp_path / "run"


def train(settings, path, **options):
    Walk.made.clear()
    saving = SavingConfig(checkpoint_every_steps=CHECKPOINT_EVERY)
    return run(from_flat({"environment": "gym"} | SMALL | settings), path, saving=saving, **options)


def train_by_command(settings, path, *more):
    Walk.made.clear()
    words = ["train", "gym", "--quiet", "--checkpoint-every-steps", str(CHECKPOINT_EVERY), "--run-dir", str(path)]
    for key, value in (SMALL | settings).items():
        words += [f"--{key.replace('_', '-')}", *map(str, value if isinstance(value, list) else [value])]
    return run_command_line([*words, *more])


def results(path):
    """Return all that a finished run found out."""
    folder = RunFolder(path)
    assert folder.read_summary()["status"] == "finished"
    kept = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(folder.snapshots.glob("*"))}
    return folder.read_summary()["state_sha256"], folder.metrics.read_text(), folder.weights.read_bytes(), kept


def assert_good_checkpoint(path, step):
    """The newest checkpoint is that of `step`, whole and finite, and nobody is at work in the folder."""
    folder = RunFolder(path)
    newest = max(folder.checkpoints.glob("step-*"))
    assert newest.name == f"step-{step:012d}"
    loaded = Checkpoints(folder.checkpoints).load(pytest.fail)
    assert loaded.path == newest
    assert loaded.state.values["step"] == step
    segments = [read_tensors(file) for file in (folder.checkpoints / "segments").iterdir()]
    for arrays in (*loaded.state.arrays.values(), *segments):
        assert all(np.isfinite(array).all() for array in arrays.values())
    assert not list(folder.path.rglob("*.part"))
    assert not folder.lock.exists()


def assert_failed(path, error, step):
    """The summary says why the run failed, after `step` steps."""
    summary = RunFolder(path).read_summary()
    assert (summary["status"], summary["steps"]) == ("failed", step)
    assert f"(step {step:,})" in summary["error"]
    assert summary["error"] in str(error)
    assert str(error).endswith(f"; {path} keeps its last checkpoint")
    assert any("TrainingError" in line for line in summary["traceback"])


@contextmanager
def disturbed(monkeypatch, **disturbances):
    """Let a disturbance of `step` or `reset` say what every walk gives back, or raise."""
    with monkeypatch.context() as patch:
        for name, disturbance in disturbances.items():
            patch.setattr(Walk, f"disturbed_{name}", disturbance)
        yield


def at_step(number, outcome_of, env=0):
    """Return a disturbance of one step of one environment: `outcome_of` maps what it gives to what it gives instead."""

    def disturbance(walk, *outcome):
        return outcome_of(*outcome) if (walk.number, walk.steps) == (env, number) else outcome

    return disturbance


def with_reward(reward):
    return lambda observation, _, *rest: (observation, reward, *rest)


def with_observation(observation):
    return lambda _, *rest: (observation, *rest)


@contextmanager
def rounds_watched(monkeypatch, watch):
    """Call `watch` with the parts of the run after every round."""
    original = session.train

    def watched(config, parts):
        for round_ in original(config, parts):
            watch(parts)
            yield round_

    with monkeypatch.context() as patch:
        patch.setattr(session, "train", watched)
        yield


def stopping_at(monkeypatch, *steps, number=signal.SIGTERM):
    """A signal comes after the rounds that end at these steps."""
    return rounds_watched(monkeypatch, lambda parts: parts.position.step in steps and signal.raise_signal(number))


# Numbers from the environment that are none


@pytest.mark.parametrize("reward", [float("nan"), -float("inf"), 1e39, np.float32("inf")], ids=repr)
def test_a_reward_that_cannot_be_stored_stops_the_run_at_once(path, monkeypatch, reward):
    with disturbed(monkeypatch, step=at_step(100, with_reward(reward))):
        with pytest.raises(TrainingError, match="environment 0 gave the reward") as caught:
            train(FUSED, path)
        assert str(float(reward)) in str(caught.value)
        assert Walk.made[0].steps == 100
    assert_failed(path, caught.value, step=99)
    assert RunFolder(path).read_summary()["updates"] == 99 - LEARNING_STARTS + 1
    assert_good_checkpoint(path, step=96)


def test_the_largest_reward_that_can_be_stored_is_taken(path, monkeypatch):
    largest = float(np.finfo(np.float32).max)
    with disturbed(monkeypatch, step=at_step(5, with_reward(largest))):
        train({"learning_starts": STEPS + 1}, path)
    assert max(record["return"] for record in RunFolder(path).read_metrics("episode")) == largest


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_observation_that_is_not_finite_stops_the_run_at_once(path, monkeypatch, value):
    strange = np.float32([0.5, value, 0])
    with (
        disturbed(monkeypatch, step=at_step(100, with_observation(strange))),
        pytest.raises(TrainingError, match=r"environment 0 gave an observation .* not finite at \[1\]") as caught,
    ):
        train(SHARED, path)
    assert_failed(path, caught.value, step=99)
    assert_good_checkpoint(path, step=96)


def test_an_observation_that_is_not_finite_stops_the_run_when_it_begins_an_episode(path, monkeypatch):
    def disturbance(walk, observation):
        return observation * np.float32("nan") if walk.resets == 5 else observation

    with disturbed(monkeypatch, reset=disturbance):
        with pytest.raises(TrainingError, match="environment 0 gave an observation that is not finite"):
            train(SHARED, path)
        assert Walk.made[0].resets == 5
    assert RunFolder(path).read_summary()["episodes"] == 3, "the round in which the fourth ended did not end"


@pytest.mark.parametrize(
    ("settings", "outcome_of", "complaint"),
    [
        (AUTOGRAD, with_reward(float("nan")), "reward nan"),
        (FUSED, with_observation(10), r"observation 10, not one of 0\.\.9"),
        (FUSED, with_observation(-1), r"observation -1, not one of 0\.\.9"),
        (FUSED, with_observation(float("nan")), r"observation nan, not one of 0\.\.9"),
        (FUSED, with_observation(None), "TypeError"),
        (FUSED, with_reward(None), "TypeError"),
        (FUSED, with_reward("much"), "ValueError"),
        (FUSED, lambda *outcome: outcome[:4], "ValueError"),
        (SHARED, with_observation([0.5, float("nan"), 0.5]), "not finite at"),
        (SHARED, with_observation(np.zeros(1, np.float32)), r"of shape \(1,\), not \(3,\)"),
        (SHARED, with_observation(np.zeros((3, 1), np.float32)), r"of shape \(3, 1\), not \(3,\)"),
    ],
)
def test_what_the_environment_must_not_give_is_its_fault(path, monkeypatch, settings, outcome_of, complaint):
    with (
        disturbed(monkeypatch, step=at_step(100, outcome_of)),
        pytest.raises(TrainingError, match=f"environment 0 (gave|raised) .*{complaint}") as caught,
    ):
        train(settings, path)
    assert_failed(path, caught.value, step=99)
    assert_good_checkpoint(path, step=96)


def test_of_several_environments_the_right_one_is_named(path, monkeypatch):
    with (
        disturbed(monkeypatch, step=at_step(20, with_reward(float("nan")), env=2)),
        pytest.raises(TrainingError, match="environment 2 gave the reward nan"),
    ):
        train({"num_envs": 3}, path)


# An environment that raises


class OutOfOrderError(Exception):
    pass


def raising(error):
    def outcome_of(*_):
        raise error

    return outcome_of


@pytest.mark.parametrize("error", [OutOfOrderError("the motor is hot"), OSError("the motor is hot")], ids=repr)
def test_what_an_environment_raises_ends_the_run_and_mended_it_finishes(path, monkeypatch, unbroken, learner, error):
    with (
        disturbed(monkeypatch, step=at_step(100, raising(error))),
        pytest.raises(TrainingError) as caught,
    ):
        train(learner, path)
    assert f"environment 0 raised {type(error).__name__} after step 99: the motor is hot" in str(caught.value)
    assert_failed(path, caught.value, step=99)
    assert any("in step" in line for line in RunFolder(path).read_summary()["traceback"])
    assert_good_checkpoint(path, step=96)
    train(learner, path)
    assert results(path) == unbroken(learner)


def test_an_environment_that_cannot_begin_an_episode_ends_the_run_and_mended_it_finishes(path, monkeypatch, unbroken):
    def jammed(walk, observation):
        if walk.resets == 5:
            raise OutOfOrderError("the door is jammed")
        return observation

    with (
        disturbed(monkeypatch, reset=jammed),
        pytest.raises(TrainingError, match=r"environment 0 raised OutOfOrderError .*the door is jammed") as caught,
    ):
        train(FUSED, path)
    steps = RunFolder(path).read_summary()["steps"]
    assert_failed(path, caught.value, step=steps)
    assert_good_checkpoint(path, step=steps // CHECKPOINT_EVERY * CHECKPOINT_EVERY)
    train(FUSED, path)
    assert results(path) == unbroken(FUSED)


def test_an_environment_that_never_begins_leaves_a_folder_that_a_mended_one_can_use(path, monkeypatch, unbroken):
    jammed = raising(OutOfOrderError("the door is jammed"))
    complaint = "environment 0 raised OutOfOrderError after step 0: the door is jammed"
    with disturbed(monkeypatch, reset=jammed), pytest.raises(TrainingError, match=complaint):
        train(FUSED, path)
    assert not (path / "lock.json").exists()
    train(FUSED, path)
    assert results(path) == unbroken(FUSED)


@pytest.mark.parametrize("outcome_of", [with_reward(float("nan")), raising(OutOfOrderError("the motor is hot"))])
def test_the_command_line_tells_it_in_a_line_and_goes_on_afterwards(path, monkeypatch, capsys, unbroken, outcome_of):
    with disturbed(monkeypatch, step=at_step(100, outcome_of)):
        assert train_by_command(FUSED, path) == 1
    told = capsys.readouterr().err
    assert told.startswith("bootdqn: environment 0 ")
    assert len(told.splitlines()) == 1
    assert run_command_line(["resume", str(path)]) == 0
    assert "going on from step 96" in capsys.readouterr().err
    assert results(path) == unbroken(FUSED)


# Heads whose numbers are none


def spoil_loss(online, head):
    """Let the head say that every value is NaN."""
    with torch.no_grad():
        online.heads[-1].bias[head] = float("nan")


def spoil_gradient(online, head):
    """Let the head pass a small number on with so large a weight that its loss is finite and its gradient is not."""
    before, last = online.heads[-2], online.heads[-1]
    with torch.no_grad():
        before.weight[head], before.bias[head] = 0, 1e-30
        last.weight[head], last.bias[head] = 1e38, 0


SPOILED = {"loss": spoil_loss, "gradient": spoil_gradient}


def part_of_head(state, head):
    parts = {name: array for name, array in state.items() if ".heads." in name and not name.startswith("target")}
    return {name: array[head] for name, array in parts.items()}


@pytest.mark.parametrize("head", [0, 1, 2])
@pytest.mark.parametrize("what", SPOILED)
@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_is_not_finite_is_named_and_does_not_learn(kind, what, head):
    spec = KINDS[kind].spec()
    spoiled = KINDS[kind].make(spec)
    rng = np.random.default_rng(1)
    spoiled.update(random_batch(rng, spec, 3, 12))
    SPOILED[what](spoiled.online, head)
    before = copy_of_state(spoiled)
    with pytest.raises(TrainingError, match=rf"the {what}( of heads\S+)? of head {head} is .*lower --learning-rate"):
        spoiled.update(random_batch(rng, spec, 3, 12))
    after = copy_of_state(spoiled)
    untouched = [head] if kind == "tabular" else range(3)
    for one in untouched:
        np.testing.assert_equal(part_of_head(after, one), part_of_head(before, one))
    for name in (name for name in before if ".torso." in name):
        np.testing.assert_array_equal(after[name], before[name])


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_weight_that_is_not_finite_is_found_in_any_layer_of_the_compiled_kernel(layer):
    spec = KINDS["tabular"].spec()
    spoiled = KINDS["tabular"].make(spec)
    with torch.no_grad():
        spoiled.online.heads[layer].weight[1] = float("nan")
    with pytest.raises(TrainingError, match="the loss of head 1 is nan"):
        spoiled.update(random_batch(np.random.default_rng(1), spec, 3, 12))


@contextmanager
def spoiled_at(monkeypatch, step, spoil, head):
    """Spoil a head just before the update at `step`, and give the state it has then, and the learner."""
    original, seen = session.train, []

    def train_and_spoil(config, parts):
        update = parts.learner.update

        def spoil_and_update(batch):
            if parts.position.step == step:
                spoil(parts.learner.online, head)
                seen.extend([copy_of_state(parts.learner), parts.learner])
            return update(batch)

        parts.learner.update = spoil_and_update
        yield from original(config, parts)

    with monkeypatch.context() as patch:
        patch.setattr(session, "train", train_and_spoil)
        yield seen


@pytest.mark.parametrize("what", SPOILED)
@pytest.mark.parametrize("settings", LEARNERS.values(), ids=LEARNERS)
def test_a_head_that_is_not_finite_ends_the_run_within_one_update(path, monkeypatch, unbroken, settings, what):
    with (
        spoiled_at(monkeypatch, 97, SPOILED[what], head=1) as seen,
        pytest.raises(TrainingError, match=rf"the {what}( of heads\S+)? of head 1 is (nan|inf)") as caught,
    ):
        train(settings, path)
    before, spoiled = seen
    np.testing.assert_equal(part_of_head(spoiled.get_state(), 1), part_of_head(before, 1))
    assert_failed(path, caught.value, step=97)
    assert_good_checkpoint(path, step=96)
    train(settings, path)
    assert results(path) == unbroken(settings)


def test_the_command_line_names_the_head_and_the_remedy(path, monkeypatch, capsys):
    with spoiled_at(monkeypatch, 97, spoil_loss, head=2):
        assert train_by_command(FUSED, path) == 1
    told = capsys.readouterr().err
    assert told.startswith(
        "bootdqn: the loss of head 2 is nan: lower --learning-rate or look at the rewards (step 97);"
    )
    assert len(told.splitlines()) == 1


def test_weights_that_were_saved_for_looking_at_stay_finite(path, monkeypatch):
    with spoiled_at(monkeypatch, 97, spoil_loss, head=0), pytest.raises(TrainingError):
        train({"eval_every_frames": 50, "eval_episodes": 1}, path)
    weights = read_tensors(RunFolder(path).weights)
    assert all(np.isfinite(array).all() for array in weights.values())


# Signals


EVALUATED = {"eval_every_frames": 64, "eval_episodes": 3}


def test_a_signal_during_an_evaluation_abandons_it_and_it_is_made_on_resumption(path, monkeypatch, unbroken):
    first_reset_of_the_second_evaluation = 1 + (EVALUATED["eval_episodes"] + 1)

    def ask_to_stop(walk, observation):
        if walk is not Walk.made[0] and walk.resets == first_reset_of_the_second_evaluation + 1:
            signal.raise_signal(signal.SIGTERM)
        return observation

    with disturbed(monkeypatch, reset=ask_to_stop):
        outcome = train(EVALUATED, path)
    assert outcome.exit_code == 143
    folder = RunFolder(path)
    assert folder.read_summary()["status"] == "interrupted"
    assert [record["step"] for record in folder.read_metrics("evaluation")] == [64]
    assert_good_checkpoint(path, step=128)
    assert train(EVALUATED, path).exit_code == 0
    assert [record["step"] for record in folder.read_metrics("evaluation")] == [64, 128, 192]
    assert results(path) == unbroken(EVALUATED)


def test_a_second_interrupt_leaves_at_once_and_the_last_checkpoint_is_good(path, monkeypatch, unbroken):
    def ask_twice(*outcome):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        return outcome

    with disturbed(monkeypatch, step=at_step(100, ask_twice)):
        assert train_by_command(FUSED, path) == 130
        assert Walk.made[0].steps == 100
    assert RunFolder(path).read_summary() is None
    assert_good_checkpoint(path, step=96)
    train(FUSED, path)
    assert results(path) == unbroken(FUSED)


def test_a_second_interrupt_while_a_checkpoint_is_written_leaves_the_one_before(path, monkeypatch, unbroken):
    original = checkpoint.write_bytes_atomically

    def interrupted(file, content):
        if json.loads(content).get("step") == 96:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        original(file, content)

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint, "write_bytes_atomically", interrupted)
        assert train_by_command(FUSED, path) == 130
    assert_good_checkpoint(path, step=48)
    train(FUSED, path)
    assert results(path) == unbroken(FUSED)


def test_one_signal_of_each_kind_is_one_request(path, monkeypatch):
    def both(parts):
        if parts.position.step == 100:
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)

    with rounds_watched(monkeypatch, both):
        assert train(FUSED, path).exit_code == 130
    assert_good_checkpoint(path, step=100)


# Checkpoints that cannot be used, and beginning again


def flip_a_bit(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


DAMAGES = {
    "a bit of the networks": lambda folder: flip_a_bit(folder / "learner.safetensors"),
    "half of the state": lambda folder: (folder / "state.json").write_bytes((folder / "state.json").read_bytes()[:99]),
    "an empty manifest": lambda folder: (folder / "manifest.json").write_bytes(b""),
    "a bit of the manifest": lambda folder: flip_a_bit(folder / "manifest.json"),
    "a file that is gone": lambda folder: (folder / "replay.safetensors").unlink(),
    "everything": lambda folder: [file.unlink() for file in folder.iterdir()],
}


def damage(path, damage_of, count):
    """Damage the newest checkpoints and return their names."""
    newest = sorted(RunFolder(path).checkpoints.glob("step-*"), reverse=True)[:count]
    for folder in newest:
        damage_of(folder)
    return [folder.name for folder in newest]


@pytest.mark.parametrize("damage_of", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_checkpoint_is_named_and_the_one_before_is_used(path, monkeypatch, capsys, unbroken, damage_of):
    with stopping_at(monkeypatch, 100):
        assert train_by_command(FUSED, path) == 143
    (name,) = damage(path, damage_of, count=1)
    capsys.readouterr()
    assert run_command_line(["resume", str(path)]) == 0
    told = capsys.readouterr().err
    assert f"CHECKPOINT {name} is damaged (" in told
    assert "; going on from step-000000000096" in told
    assert "Traceback" not in told
    assert results(path) == unbroken(FUSED)


def test_a_run_without_a_usable_checkpoint_says_what_to_do_and_begins_again_when_told(
    path, monkeypatch, capsys, unbroken
):
    with stopping_at(monkeypatch, 100):
        assert train_by_command(FUSED, path) == 143
    names = damage(path, DAMAGES["a bit of the networks"], count=2)
    capsys.readouterr()
    before = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
    for _ in range(2):
        assert train_by_command(FUSED, path) == 2
        told = capsys.readouterr().err
        assert all(f"{name} is damaged" in told for name in names)
        assert "--restart begins the run again" in told
        assert len(told.splitlines()) == 1
        assert {file: file.read_bytes() for file in path.rglob("*") if file.is_file()} == before
    with pytest.raises(DamagedFileError):
        train(FUSED, path)
    assert train_by_command(FUSED, path, "--restart") == 0
    assert results(path) == unbroken(FUSED)


def test_metrics_shorter_than_their_checkpoint_says_are_no_traceback(path, monkeypatch, capsys):
    with stopping_at(monkeypatch, 100):
        train(FUSED, path)
    RunFolder(path).metrics.write_text("")
    assert run_command_line(["resume", str(path), "--quiet"]) == 2
    told = capsys.readouterr().err
    assert "metrics.jsonl is shorter than its checkpoint says; --restart begins the run again" in told


def test_a_finished_run_is_begun_again_when_told_and_comes_out_the_same(path, capsys):
    settings = {"snapshot_every": 100}
    train(settings, path)
    found = results(path)
    stale = RunFolder(path).snapshots / "step-000000000007.safetensors"
    stale.write_bytes(b"of another time")
    assert train_by_command(settings, path) == 0
    assert "already finished" in capsys.readouterr().out
    assert stale.exists()
    assert train_by_command(settings, path, "--restart") == 0
    assert "already" not in capsys.readouterr().out
    assert results(path) == found


# Resuming by name


def test_a_stopped_run_is_resumed_by_its_folder_alone(path, monkeypatch, capsys, unbroken):
    with stopping_at(monkeypatch, 100):
        assert train_by_command(AUTOGRAD, path) == 143
    assert "interrupted" in capsys.readouterr().out
    assert run_command_line(["resume", str(path)]) == 0
    captured = capsys.readouterr()
    assert "going on from step 100" in captured.err
    assert "finished" in captured.out
    assert results(path) == unbroken(AUTOGRAD)
    provenance = json.loads(RunFolder(path).provenance.read_text())
    assert [entry["step"] for entry in provenance["resumed"]] == [100]
    assert provenance["exact"]


def test_resuming_a_finished_run_changes_nothing(path, capsys):
    train(FUSED, path)
    before = {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.iterdir()}
    assert run_command_line(["resume", str(path)]) == 0
    assert "already finished" in capsys.readouterr().out
    assert {file: (file.read_bytes(), file.stat().st_mtime_ns) for file in path.iterdir()} == before


def test_a_folder_that_is_no_run_cannot_be_resumed_and_is_left_alone(tmp_path, capsys):
    (tmp_path / "thesis.tex").write_text("years of work")
    for folder in (tmp_path, tmp_path / "thesis.tex", tmp_path / "nowhere"):
        assert run_command_line(["resume", str(folder)]) == 2
        assert f"{folder} is not a run folder" in capsys.readouterr().err
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_run_that_another_process_trains_cannot_be_resumed(path, monkeypatch, capsys):
    with stopping_at(monkeypatch, 100):
        train(FUSED, path)
    with locked(path / "lock.json"):
        assert run_command_line(["resume", str(path), "--quiet"]) == 2
    assert "in use by process" in capsys.readouterr().err
    assert_good_checkpoint(path, step=100)


def test_a_run_that_another_process_took_over_stops_before_it_saves(path, monkeypatch):
    lock, theirs = (
        path / "lock.json",
        json.dumps({"host": "faraway", "boot_id": "", "pid": 7, "since": "", "token": ""}),
    )

    def take_over(parts):
        if parts.position.step == 70:
            lock.unlink()
            lock.write_text(theirs)

    with (
        rounds_watched(monkeypatch, take_over),
        pytest.raises(TrainingError, match="taken over by process 7 on faraway"),
    ):
        train(FUSED, path)
    assert lock.read_text() == theirs
    lock.unlink()
    assert_good_checkpoint(path, step=48)


def test_a_run_whose_episode_cannot_be_repeated_goes_on_and_says_that_it_is_not_exact(path, monkeypatch, capsys):
    with stopping_at(monkeypatch, 100):
        train(FUSED, path)
    with disturbed(monkeypatch, step=lambda _, observation, reward, *rest: (observation, reward + 0.5, *rest)):
        assert run_command_line(["resume", str(path), "--quiet"]) == 0
    assert "environment 0: the episode came out differently" in capsys.readouterr().err
    provenance = json.loads(RunFolder(path).provenance.read_text())
    assert not provenance["exact"]
    assert RunFolder(path).read_summary()["steps"] == STEPS


# Records


def test_records_of_a_run_stopped_and_killed_several_times_are_those_of_one_never_stopped(path, monkeypatch, unbroken):
    def kill(parts):
        if parts.position.step == 170:
            raise KeyboardInterrupt

    settings = EVALUATED | {"num_envs": 2}
    with stopping_at(monkeypatch, 10, 64, 100, 130):
        for _ in range(4):
            assert train(settings, path).exit_code == 143
    with pytest.raises(KeyboardInterrupt), rounds_watched(monkeypatch, kill):
        train(settings, path)
    assert train(settings, path).exit_code == 0
    assert results(path) == unbroken(settings)
    records = list(RunFolder(path).read_metrics())
    assert [record["step"] for record in records] == sorted(record["step"] for record in records)
    numbers = {"episode": "episode", "update": "updates", "evaluation": "step"}
    found = {kind: [record[key] for record in records if record["kind"] == kind] for kind, key in numbers.items()}
    assert found["episode"] == list(range(1, 1 + len(found["episode"])))
    assert found["update"] == list(range(10, 1 + STEPS - LEARNING_STARTS, 10))
    assert found["evaluation"] == [64, 128, 192]
    timing = [json.loads(line) for line in RunFolder(path).timing.read_text().splitlines()]
    for key in ("step", "seconds"):
        assert [record[key] for record in timing] == sorted(record[key] for record in timing)


def test_timing_tells_what_checkpoints_cost(path):
    train(FUSED, path)
    timing = [json.loads(line) for line in RunFolder(path).timing.read_text().splitlines()]
    saved = [record for record in timing if "checkpoint_seconds" in record]
    assert [record["step"] for record in saved] == [0, 48, 96, 144, 192]
    assert all(record["checkpoint_seconds"] >= 0 and record["checkpoint_bytes"] > 0 for record in saved)


@pytest.mark.parametrize(
    ("every", "num_envs", "steps"),
    [("log", 1, [100, 200]), (70, 1, [70, 140]), (50, 1, [50, 100, 150, 200]), (50, 3, [51, 102, 150, 201])],
)
def test_networks_are_kept_at_the_chosen_steps(path, monkeypatch, every, num_envs, steps):
    settings = {"snapshot_every": every, "num_envs": num_envs}
    seen = {}

    def remember(parts):
        seen[parts.position.step] = {
            name: value.numpy().copy() for name, value in parts.learner.online.state_dict().items()
        }

    with rounds_watched(monkeypatch, remember):
        assert train_by_command(settings, path) == 0
    files = sorted(RunFolder(path).snapshots.iterdir())
    assert [file.name for file in files] == [f"step-{step:012d}.safetensors" for step in steps]
    for file, step in zip(files, steps, strict=True):
        np.testing.assert_equal(read_tensors(file), seen[step])


def test_networks_kept_by_a_stopped_run_are_those_of_one_never_stopped(path, monkeypatch, unbroken):
    settings = {"snapshot_every": 30}
    with stopping_at(monkeypatch, 70, 120):
        train(settings, path)
        train(settings, path)
    train(settings, path)
    assert len(results(path)[-1]) == 6
    assert results(path) == unbroken(settings)


def test_a_file_that_cannot_be_written_does_not_stop_the_training_and_is_no_end(path, monkeypatch, capsys, unbroken):
    with stopping_at(monkeypatch, 70):
        train(EVALUATED, path)
    weights = RunFolder(path).weights
    weights.unlink()
    weights.mkdir()
    assert run_command_line(["resume", str(path), "--quiet"]) == 1
    captured = capsys.readouterr()
    assert f"{path} could not be written at step 128" in captured.err
    assert "training goes on" in captured.err
    assert RunFolder(path).read_summary() is None
    weights.rmdir()
    assert run_command_line(["resume", str(path), "--quiet"]) == 0
    assert results(path) == unbroken(EVALUATED)
