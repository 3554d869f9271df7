"""The learner of heads with one hidden layer on a shared torso: a compiled kernel learns the heads, PyTorch the torso.

`--engine auto` and `--engine compiled` select it where it applies, which is on all images.
"""

import copy
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import accumulate, pairwise
from math import prod
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bootdqn.agent import shared_torso_kernel as kernel
from bootdqn.agent.autograd_learner import activation_bytes
from bootdqn.agent.ensemble import Ensemble
from bootdqn.agent.kernel_memory import BETA1, BETA2, aligned_zeros, nbytes, padded
from bootdqn.agent.layers import FanOutLinear
from bootdqn.agent.learner import UpdateResult, check_finite
from bootdqn.agent.torso_passes import make_torso_pass
from bootdqn.agent.vectors import WIDE
from bootdqn.common.specs import Array, Batch, ObservationSpec
from bootdqn.config.agent import LearnerConfig


class SharedTorsoLearner:
    """A learner that changes the parameters of a PyTorch ensemble in place.

    The ensemble's parameters become views of the kernel's arrays; those of the torso lie in one array.
    """

    def __init__(self, config: LearnerConfig, ensemble: Ensemble) -> None:
        self._config = config
        self.online = ensemble
        target = copy.deepcopy(ensemble).requires_grad_(False)
        self._torso_pass, self._target_torso_pass = make_torso_pass(ensemble.torso), make_torso_pass(target.torso)
        torso_size = padded(sum(parameter.numel() for parameter in ensemble.torso.parameters()), WIDE)
        self._torso, self._torso_target, self._torso_moment1, self._torso_moment2, self._torso_gradients = (
            aligned_zeros(torso_size) for _ in range(5)
        )
        first, _, _, bias = (parameter.shape for parameter in ensemble.heads.parameters())
        self._q_shape = tuple(bias)  # K, A
        self._heads, self._target, self._moment1, self._moment2 = (
            kernel.make_heads(first[0], first[1], first[2], bias[1]) for _ in range(4)
        )
        online_arrays = self._arrays(self._torso, self._heads)
        target_arrays = self._arrays(self._torso_target, self._target)
        for network, arrays in ((ensemble, online_arrays), (target, target_arrays)):
            for array, parameter in zip(arrays, network.learned().values(), strict=True):
                array[:] = parameter.detach().numpy()
                parameter.data = torch.from_numpy(array)
        self._steps = 0
        self._set_memory(1)

    @staticmethod
    def supports(ensemble: Ensemble) -> bool:
        """Return whether the kernel supports this architecture."""
        return len(ensemble.heads) == 2 and isinstance(ensemble.heads[0], FanOutLinear)

    def q_values(self, observation: Array) -> Array:
        """Return the online Q-values (E, K, A) of observations (E, ...)."""
        features = np.zeros((self._heads.hidden.shape[2], padded(len(observation), WIDE)), np.float32)
        self._torso_pass.forward(observation, features, learn=False)
        rows = np.ascontiguousarray(features[:, : len(observation)].T)
        q = np.empty((len(observation), *self._q_shape), np.float32)
        self._in_parallel(kernel.q_values, len(self._gradients.loss), self._heads, rows, q)
        if self.online.prior is not None:
            with torch.inference_mode():
                q += self.online.prior(_to_tensor(observation)).numpy()
        return q

    def update(self, batch: Batch) -> UpdateResult:
        """Take one gradient step on the mean over heads of the masked losses."""
        if len(batch.action) != self._gradients.error.shape[1]:
            self._set_memory(len(batch.action))
        num_heads, gradients, rules = len(self._gradients.loss), self._gradients, self._config
        double_q, huber = rules.double_q, rules.loss == "huber"
        transitions = self._transitions(batch)
        self._in_parallel(
            kernel.evaluate, num_heads, self._heads, self._target, transitions, double_q, huber, gradients
        )
        check_finite("loss", gradients.loss)
        check_finite("gradient", gradients.finite)
        self._differentiate_torso()
        self._steps += 1
        step_size = np.float32(rules.learning_rate / (1 - BETA1**self._steps))
        root_scale = np.float32(1 / (1 - BETA2**self._steps) ** 0.5)
        kernel.fill_blocks(self._features, self._blocks)
        changed = self._heads, self._moment1, self._moment2
        self._in_parallel(kernel.step, num_heads, *changed, self._blocks, gradients, step_size, root_scale)
        kernel.adam(self._torso, self._torso_moment1, self._torso_moment2, self._torso_gradients, step_size, root_scale)
        owners = np.maximum(batch.mask.sum(axis=1), 1).astype(np.float32)
        return UpdateResult(gradients.loss.copy(), gradients.error.sum(axis=0) / owners)

    def update_target(self) -> None:
        """Move the target networks towards the online ones."""
        rate = np.float32(self._config.target_rate)
        pairs = ((self._torso_target, self._torso), *zip(self._target, self._heads, strict=True))
        for target, online in pairs:
            target[:] = online if rate == 1 else target + rate * (online - target)

    def memory(self, observation: ObservationSpec) -> int:
        """Return the bytes that updates need: networks, optimizer, gradients, activations."""
        size = self._config.batch_size
        batch = torch.from_numpy(np.empty((size, *observation.shape), observation.dtype))
        prior_parameters = () if self.online.prior is None else self.online.prior.parameters()
        prior = sum(parameter.nbytes for parameter in prior_parameters)
        heads = self._heads, self._target, self._moment1, self._moment2, kernel.make_gradients(self._heads, size)
        features = 5 * 4 * size * self._heads.hidden.shape[2]  # three passes, their blocks and their gradient
        passes = 2 * activation_bytes(self.online.torso, batch) + 2 * batch.nbytes
        total: int = nbytes(heads) + 5 * self._torso.nbytes + prior + features + passes
        return total

    def get_state(self) -> dict[str, Array]:
        """Return all parameters, and Adam's two moments and step count."""
        return self._named_arrays() | {"adam_steps": np.asarray(self._steps, np.int64)}

    def set_state(self, state: dict[str, Array]) -> None:
        """Restore what `get_state` returned, exactly, or the state of an `AutogradLearner`."""
        for name, array in self._named_arrays().items():
            if state[name].shape != array.shape:
                raise ValueError(f"{name} has shape {array.shape} here, {state[name].shape} in the state")
            array[:] = state[name]
        self._steps = int(state["adam_steps"])

    def _transitions(self, batch: Batch) -> kernel.Transitions:
        """Pass a batch through the torsos, and return what the kernel needs to know of it."""
        self._torso_pass.forward(batch.observation, self._features, learn=True)
        if self._config.double_q:
            self._torso_pass.forward(batch.next_observation, self._features, self._next_features.shape[1])
        self._target_torso_pass.forward(batch.next_observation, self._next_features)
        return kernel.Transitions(
            self._features,
            self._next_features,
            self._prior_q(batch),
            batch.action,
            batch.reward,
            batch.discount,
            batch.mask,
            batch.weight,
            batch.next_legal,
        )

    def _prior_q(self, batch: Batch) -> Array:
        """Return the prior's Q-values (2, K, A, B) of observations and next observations; (2, K, A, 0) without one."""
        if self.online.prior is None:
            return np.empty((2, *self._q_shape, 0), np.float32)
        observations = map(_to_tensor, (batch.observation, batch.next_observation))
        with torch.no_grad():
            both = torch.stack([self.online.prior(observation) for observation in observations])
        prior: Array = both.permute(0, 2, 3, 1).contiguous().numpy()
        return prior

    def _differentiate_torso(self) -> None:
        """Write the gradients of the torso's parameters, from those of the hidden units, into `_torso_gradients`."""
        if not len(self._torso):
            return
        by_feature = np.empty_like(self._next_features)
        blocks = -(-len(by_feature) // kernel.BLOCK)
        self._in_parallel(kernel.feature_gradients, blocks, self._heads, self._gradients, by_feature)
        gradients = self._torso_pass.backward(by_feature)
        for array, gradient in zip(_views(self._torso_gradients, self.online.torso), gradients, strict=True):
            array[:] = gradient
        check_finite("gradient of the torso", self._torso_gradients.sum(keepdims=True), shared=True)

    def _in_parallel(self, function: Callable[..., None], count: int, *arguments: Any) -> None:
        """Call a function of the kernel for 0 to `count` - 1, some in each of PyTorch's number of threads."""
        threads = min(torch.get_num_threads(), count)
        if threads == 1:
            function(0, count, *arguments)
            return
        bounds = [count * thread // threads for thread in range(threads + 1)]
        for call in [self._pool.submit(function, *part, *arguments) for part in pairwise(bounds)]:
            call.result()

    @cached_property
    def _pool(self) -> ThreadPoolExecutor:
        # its threads flush denormal numbers, as the caller does
        return ThreadPoolExecutor(torch.get_num_threads(), "bootdqn-heads")

    def _set_memory(self, batch_size: int) -> None:
        """Allocate the memory of an update."""
        width, columns = self._heads.hidden.shape[2], padded(batch_size, WIDE)
        next_columns = columns if self._config.double_q else 0
        self._features = aligned_zeros(width, columns + next_columns)
        self._next_features = aligned_zeros(width, columns)
        self._blocks = aligned_zeros(width // WIDE, batch_size, WIDE)
        self._gradients = kernel.make_gradients(self._heads, batch_size)

    def _named_arrays(self) -> dict[str, Array]:
        parts = {
            "online": (self._torso, self._heads),
            "target": (self._torso_target, self._target),
            "first_moment": (self._torso_moment1, self._moment1),
            "second_moment": (self._torso_moment2, self._moment2),
        }
        arrays = {
            f"{part}.{name}": array
            for part, memory in parts.items()
            for name, array in zip(self.online.learned(), self._arrays(*memory), strict=True)
        }
        prior = {} if self.online.prior is None else self.online.prior.state_dict(prefix="online.prior.")
        return arrays | {name: value.numpy() for name, value in prior.items()}

    def _arrays(self, torso: Array, heads: kernel.Heads) -> list[Array]:
        """Return views of the kernel's arrays in the shapes of the ensemble's learned parameters."""
        logical = heads._replace(hidden=heads.hidden.swapaxes(1, 2), output=heads.output.swapaxes(1, 2))
        shapes = [parameter.shape for parameter in self.online.heads.parameters()]
        in_heads = [array[tuple(map(slice, shape))] for array, shape in zip(logical, shapes, strict=True)]
        return _views(torso, self.online.torso) + in_heads


def _views(memory: Array, module: nn.Module) -> list[Array]:
    """Return views of an array (n,), one after the other, in the shapes of a module's parameters."""
    shapes = [tuple(parameter.shape) for parameter in module.parameters()]
    starts = list(accumulate(map(prod, shapes), initial=0))
    return [memory[start : start + prod(shape)].reshape(shape) for start, shape in zip(starts, shapes, strict=False)]


def _to_tensor(array: Array) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))
