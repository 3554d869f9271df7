"""Heads with values that are not finite: the run names them and stops before they are saved."""

from contextlib import contextmanager

import numpy as np
import pytest
import torch

from bootdqn.agent.autograd_learner import _report_gradients
from bootdqn.common.errors import TrainingError
from bootdqn.common.tensor_files import read_tensors
from bootdqn.runs.directory import RunDirectory
from bootdqn.training import trainer
from reference.batches import random_batch
from reference.comparison import KINDS, copy_of_state
from reference.faults import COMPILED, LEARNERS, assert_failed, assert_good_checkpoint, results, train, train_by_command

pytestmark = pytest.mark.usefixtures("one_thread")


def spoil_loss(online, head):
    """Make every value of the head NaN."""
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
    components = {name: array for name, array in state.items() if ".heads." in name and not name.startswith("target")}
    return {name: array[head] for name, array in components.items()}


def failing_update(kind, what, head):
    """Spoil a head of a learner that has learned; return its state before and after the update that names the head."""
    spec, rng = KINDS[kind].spec(), np.random.default_rng(1)
    spoiled = KINDS[kind].make(spec)
    spoiled.update(random_batch(rng, spec, 3, 12))
    SPOILED[what](spoiled.online, head)
    before = copy_of_state(spoiled)
    with pytest.raises(TrainingError, match=rf"the {what}( of heads\S+)? of head {head} is .*lower --learning-rate"):
        spoiled.update(random_batch(rng, spec, 3, 12))
    return before, copy_of_state(spoiled)


@pytest.mark.parametrize("head", [0, 1, 2])
@pytest.mark.parametrize("what", SPOILED)
@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_is_not_finite_is_named_and_does_not_learn(kind, what, head):
    before, after = failing_update(kind, what, head)
    untouched = [head] if kind == "tabular" else range(3)
    for one in untouched:
        np.testing.assert_equal(part_of_head(after, one), part_of_head(before, one))
    for name in (name for name in before if ".torso." in name):
        np.testing.assert_array_equal(after[name], before[name])


@pytest.mark.parametrize("loss", ["squared", "huber"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_head_that_owns_an_infinite_reward_is_named_and_no_other(kind, loss):
    spec = KINDS[kind].spec()
    batch = random_batch(np.random.default_rng(1), spec, 5, 12)
    batch.mask[7] = np.arange(5) == 3
    batch.reward[7] = np.inf
    with pytest.raises(TrainingError, match="the loss of head 3 is inf"):
        KINDS[kind].make(spec, num_heads=5, loss=loss).update(batch)


def test_gradients_that_overflow_only_together_stop_the_run():
    gradients = {"heads.0.weight": torch.full((10, 2), 1e19), "torso.0.weight": torch.ones(3)}
    assert torch.isinf(gradients["heads.0.weight"].norm())
    with pytest.raises(TrainingError, match="the gradients of all heads together overflow: lower --learning-rate"):
        _report_gradients(gradients)


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
    original, seen = trainer.train, []

    def train_and_spoil(config, components):
        update = components.learner.update

        def spoil_and_update(batch):
            if components.loop.step == step:
                spoil(components.learner.online, head)
                seen.extend([copy_of_state(components.learner), components.learner])
            return update(batch)

        components.learner.update = spoil_and_update
        yield from original(config, components)

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "train", train_and_spoil)
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
        assert train_by_command(COMPILED, path) == 1
    message = capsys.readouterr().err
    assert message.startswith(
        "bootdqn: the loss of head 2 is nan: lower --learning-rate or look at the rewards (step 97);"
    )
    assert len(message.splitlines()) == 1


def test_saved_weights_stay_finite(path, monkeypatch):
    with spoiled_at(monkeypatch, 97, spoil_loss, head=0), pytest.raises(TrainingError):
        train({"eval_every_steps": 50, "eval_episodes": 1}, path)
    weights = read_tensors(RunDirectory(path).weights)
    assert all(np.isfinite(array).all() for array in weights.values())
