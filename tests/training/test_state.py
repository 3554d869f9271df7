"""Putting a run together again: what is wrong with the machine is not blamed on the checkpoint."""

import pytest
import torch

from bootdqn.common.errors import DamagedFileError
from reference.faults import FUSED, rounds_watched, train


@pytest.mark.parametrize("error", [MemoryError("none left"), torch.OutOfMemoryError("CUDA out of memory")], ids=repr)
def test_too_little_memory_to_go_on_is_not_a_foreign_checkpoint(tmp_path, monkeypatch, error):
    def kill(parts):
        if parts.position.step == 100:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), rounds_watched(monkeypatch, kill):
        train(FUSED, tmp_path / "run")

    def refuse(*_):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr("bootdqn.agent.tabular_learner.TabularLearner.set_state", refuse)
        with pytest.raises(type(error)):
            train(FUSED, tmp_path / "run")
        error = ValueError("of another size")
        with pytest.raises(DamagedFileError, match="not one of this run: ValueError: of another size"):
            train(FUSED, tmp_path / "run")
    assert train(FUSED, tmp_path / "run").exit_code == 0
