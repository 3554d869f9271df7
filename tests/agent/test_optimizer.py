"""Adam against PyTorch's own, whatever the memory layouts of parameters and gradients."""

import pytest
import torch

from bootdqn.agent.backends import adam_operator
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
        adam.step({"w": LAYOUTS[gradient_layout](gradient)}, skip=torch.zeros(()))
        peer.grad = gradient.clone()
        theirs.step()
        assert torch.equal(parameter, peer)
    assert parameter.stride() == strides


def test_gradients_in_bfloat16_are_converted_whatever_their_layout():
    generator = torch.Generator().manual_seed(0)
    start, gradient = torch.randn(2, 3, 5, 7, generator=generator)
    reduced = {name: layout(gradient.bfloat16()) for name, layout in LAYOUTS.items()}
    parameters, same = ({name: start.clone() for name in LAYOUTS} for _ in range(2))
    Adam(parameters, 0.01).step(reduced, skip=torch.zeros(()))
    Adam(same, 0.01).step({name: value.float() for name, value in reduced.items()}, skip=torch.zeros(()))
    for name, parameter in parameters.items():
        assert torch.equal(parameter, same[name])
        assert not torch.equal(parameter, start)


def test_a_skipped_step_changes_nothing_and_does_not_count():
    start = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    parameter, peer = start.clone(), start.clone()
    one, other = Adam({"w": parameter}, 0.01), Adam({"w": peer}, 0.01)
    one.step({"w": torch.full_like(start, torch.nan)}, skip=torch.ones(()))
    assert torch.equal(parameter, start)
    for adam in (one, other):
        adam.step({"w": start}, skip=torch.zeros(()))
    assert torch.equal(parameter, peer)
    assert one.steps == other.steps == 1


def test_the_operators_that_take_the_place_of_the_fused_adam_take_its_steps(monkeypatch):
    start, *gradients = torch.randn(6, 3, 5, generator=torch.Generator().manual_seed(0))
    parameter, peer = start.clone(), start.clone()
    fused = Adam({"w": peer}, 0.01)
    monkeypatch.setattr("bootdqn.agent.optimizer.adam_operator", lambda _: adam_operator(torch.device("xla")))
    adam = Adam({"w": parameter}, 0.01)
    for gradient in gradients:
        for one in (adam, fused):
            one.step({"w": torch.full_like(start, torch.nan)}, skip=torch.ones(()))
            one.step({"w": gradient}, skip=torch.zeros(()))
    assert adam.steps == fused.steps == len(gradients)
    for found, expected in (
        (parameter - start, peer - start),
        (adam.first_moment["w"], fused.first_moment["w"]),
        (adam.second_moment["w"], fused.second_moment["w"]),
    ):
        # about ten roundings a step, and the rounding of the parameters themselves, which are about 1
        torch.testing.assert_close(found, expected, rtol=len(gradients) * 10 * 2**-24, atol=len(gradients) * 2**-22)
