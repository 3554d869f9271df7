"""Layers of K heads against K separate `nn.Linear` layers, and look-up against multiplication by one-hot vectors."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import one_hot

from bootdqn.agent.layers import BatchedLinear, FanOutLinear, FanOutTable, OneHotTable, sample_parameters
from bootdqn.agent.torsos import Flat
from reference.threads import torch_threads

SIZES = [(1, 1, 1, 1), (1, 4, 3, 2), (5, 1, 6, 4), (3, 8, 1, 5), (20, 50, 50, 128), (4, 100, 7, 1), (2, 3, 2, 33)]
"""Heads, inputs, outputs, batch."""
sizes = pytest.mark.parametrize(("num_heads", "inputs", "outputs", "batch"), SIZES)


def initialised(layer, seed=0):
    sample_parameters(layer, np.random.default_rng(seed), None)
    return layer.double()  # so that a tolerance means the formula, not the rounding


def separate(layer):
    """Return K `nn.Linear` layers with the parameters of a layer of K heads."""
    num_heads, inputs, outputs = layer.weight.shape
    layers = [nn.Linear(inputs, outputs, dtype=torch.float64) for _ in range(num_heads)]
    with torch.no_grad():
        for k, alone in enumerate(layers):
            alone.weight.copy_(layer.weight[k].T)
            alone.bias.copy_(layer.bias[k])
    return layers


def normal(*shape):
    return torch.from_numpy(np.random.default_rng(1).normal(size=shape))


@sizes
def test_batched_layers_are_separate_layers_on_separate_inputs(num_heads, inputs, outputs, batch):
    layer = initialised(BatchedLinear(num_heads, inputs, outputs))
    x = normal(num_heads, batch, inputs)
    expected = torch.stack([alone(x[k]) for k, alone in enumerate(separate(layer))])
    assert expected.shape == (num_heads, batch, outputs)
    torch.testing.assert_close(layer(x.mT).mT, expected, rtol=1e-12, atol=1e-13)


@sizes
def test_fanned_out_layers_are_separate_layers_on_one_input(num_heads, inputs, outputs, batch):
    layer = initialised(FanOutLinear(num_heads, inputs, outputs))
    x = normal(batch, inputs)
    expected = torch.stack([alone(x) for alone in separate(layer)])
    torch.testing.assert_close(layer(x).mT, expected, rtol=1e-12, atol=1e-13)


@sizes
@pytest.mark.parametrize("layer_type", [BatchedLinear, FanOutLinear, FanOutTable])
def test_gradients_are_those_of_separate_layers(layer_type, num_heads, inputs, outputs, batch):
    layer = initialised(layer_type(num_heads, inputs, outputs))
    alone = separate(layer)
    index = torch.from_numpy(np.random.default_rng(2).integers(0, inputs, batch))
    x = {BatchedLinear: normal(num_heads, batch, inputs), FanOutLinear: normal(batch, inputs), FanOutTable: index}[
        layer_type
    ]
    upstream = torch.from_numpy(np.random.default_rng(3).normal(size=(num_heads, batch, outputs)))
    (layer(x.mT if layer_type is BatchedLinear else x).mT * upstream).sum().backward()
    for k, linear in enumerate(alone):
        own = {BatchedLinear: lambda k: x[k], FanOutLinear: lambda _: x, FanOutTable: lambda _: hot(x, inputs)}
        (linear(own[layer_type](k)) * upstream[k]).sum().backward()
        torch.testing.assert_close(layer.weight.grad[k], linear.weight.grad.T, rtol=1e-12, atol=1e-12)
        torch.testing.assert_close(layer.bias.grad[k], linear.bias.grad, rtol=1e-12, atol=1e-12)


def hot(index, num_values):
    return one_hot(index, num_values).double()


# Look-up


@sizes
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_look_up_is_multiplication_by_one_hot_vectors_bit_for_bit(num_heads, inputs, outputs, batch, dtype):
    table = initialised(FanOutTable(num_heads, inputs, outputs)).to(dtype)
    dense = FanOutLinear(num_heads, inputs, outputs).to(dtype)
    dense.load_state_dict(table.state_dict())
    index = torch.from_numpy(np.random.default_rng(4).integers(0, inputs, batch))
    vectors = one_hot(index, inputs).to(dtype)
    assert torch.equal(table(index), dense(vectors))
    assert torch.equal(table(index).mT, vectors @ table.weight + table.bias[:, None])
    assert torch.equal(
        table(index).mT, torch.stack([nn.functional.linear(vectors, w.T, b) for w, b in heads_of(table)])
    )


def heads_of(layer):
    return list(zip(layer.weight, layer.bias, strict=True))


@sizes
def test_a_table_of_one_layer_is_a_linear_layer_on_one_hot_vectors_bit_for_bit(num_heads, inputs, outputs, batch):
    table = OneHotTable(inputs, outputs)
    sample_parameters(table, np.random.default_rng(num_heads), None)
    index = torch.from_numpy(np.random.default_rng(5).integers(0, inputs, batch))
    vectors = one_hot(index, inputs).to(torch.float32)
    assert table(index).shape == (batch, outputs)
    assert torch.equal(table(index), nn.functional.linear(vectors, table.weight.T, table.bias))


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(
    ("table", "axis"),
    [(OneHotTable(100, 300), 0), (FanOutTable(1, 100, 300), 1), (FanOutTable(7, 100, 50), 1)],
    ids=["one table", "one head", "seven heads"],
)
def test_gradients_of_a_table_add_up_in_the_order_of_the_batch_with_any_number_of_threads(table, axis):
    sample_parameters(table, np.random.default_rng(0), None)
    index = torch.from_numpy(np.random.default_rng(5).integers(0, 20, 512))
    rows = (lambda: table(index).mT) if axis else (lambda: table(index))  # a batch of heads is in the last axis
    slopes = torch.randn(rows().shape, generator=torch.Generator().manual_seed(0))
    expected = torch.zeros_like(table.weight)
    for b, row in enumerate(index.tolist()):
        expected.select(axis, row).add_(slopes.select(axis, b))
    for _ in range(20):
        table.zero_grad()
        (rows() * slopes).sum().backward()
        assert torch.equal(table.weight.grad, expected)


@pytest.fixture
def two_threads():
    with torch_threads(2):
        yield


def test_an_observation_beyond_the_table_is_an_error():
    for table in (initialised(FanOutTable(2, 5, 3)), initialised(OneHotTable(5, 3))):
        with pytest.raises(IndexError):
            table(torch.tensor([5]))


# Observations of any type


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float16, np.float32, np.float64, np.bool_])
def test_arrays_of_any_type_become_the_same_floats(dtype):
    x = np.random.default_rng(6).integers(0, 2, (4, 2, 3)).astype(dtype)
    flat = Flat()(torch.from_numpy(x))
    assert flat.dtype == torch.float32
    np.testing.assert_array_equal(flat, x.reshape(4, 6).astype(np.float32))


def test_bytes_are_not_scaled_and_rows_stay_in_order():
    x = torch.tensor([[[0, 1], [128, 255]], [[7, 6], [5, 4]]], dtype=torch.uint8)
    assert Flat()(x).tolist() == [[0, 1, 128, 255], [7, 6, 5, 4]]


def test_an_observation_that_is_one_number_becomes_a_vector_of_one():
    assert Flat()(torch.tensor([1.5, 2.5])).tolist() == [[1.5], [2.5]]
