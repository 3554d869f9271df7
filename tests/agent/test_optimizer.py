"""Adam against PyTorch's own, whatever the memory layouts of parameters and gradients."""

import pytest
import torch

from bootdqn.agent.optimizer import Adam

LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.transpose(0, 1).contiguous().transpose(0, 1),
    "last axis first": lambda x: x.movedim(-1, 0).contiguous().movedim(0, -1),
}


@pytest.mark.parametrize("gradient_layout", LAYOUTS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_steps_are_those_of_pytorch_in_every_memory_layout(layout, gradient_layout):
    generator = torch.Generator().manual_seed(0)
    start, *gradients = torch.randn(4, 3, 5, 7, generator=generator)
    parameter, peer = LAYOUTS[layout](start.clone()), torch.nn.Parameter(start.clone())
    strides = parameter.stride()
    adam, theirs = Adam({"w": parameter}, 0.01), torch.optim.Adam([peer], lr=0.01, fused=True)
    for gradient in gradients:
        adam.step({"w": LAYOUTS[gradient_layout](gradient)})
        peer.grad = gradient.clone()
        theirs.step()
        assert torch.equal(parameter, peer)
    assert parameter.stride() == strides
