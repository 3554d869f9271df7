"""Another device than the processor, without having one.

On PyTorch's meta device nothing is computed, but tensors of two devices still cannot be mixed, and the code goes the
ways that it goes on a GPU.
"""

from dataclasses import replace

import numpy as np
import pytest
import torch

from bootdqn.agent import autograd_learner
from reference.batches import random_batch
from reference.comparison import KINDS

ELSEWHERE = {name: replace(kind, device="meta") for name, kind in KINDS.items() if name != "tabular"}


@pytest.fixture
def nothing_comes_back(monkeypatch):
    """There are no numbers on the meta device: zeros of the right shape take the place of what would come from it."""

    def of_shape(*vectors):
        assert {vector.device.type for vector in vectors} == {"meta"}
        return [np.zeros(len(vector), np.float32) for vector in vectors]

    monkeypatch.setattr(autograd_learner, "_to_host", of_shape)


@pytest.mark.usefixtures("nothing_comes_back")
@pytest.mark.parametrize("prior_scale", [0.0, 2.0])
@pytest.mark.parametrize(
    "rules", [{}, {"double_q": False}, {"target_rate": 0.5}, {"loss": "huber", "precision": "bf16"}], ids=str
)
@pytest.mark.parametrize("kind", ELSEWHERE)
def test_an_update_mixes_no_devices(kind, rules, prior_scale):
    spec = ELSEWHERE[kind].spec()
    learner = ELSEWHERE[kind].make(spec, prior_scale=prior_scale, **rules)
    rng = np.random.default_rng(0)
    for _ in range(2):
        learner.update(random_batch(rng, spec, 3, 12))
        learner.update_target()
    assert {value.device.type for value in learner.online.state_dict().values()} == {"meta"}


def test_the_meta_device_refuses_what_is_mixed():
    """Or the test above could not fail."""
    with pytest.raises(RuntimeError, match="device"):
        torch.zeros(3, device="meta") + torch.zeros(3)
