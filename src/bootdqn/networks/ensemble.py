"""The ensemble: an optional shared torso, then K heads."""

from itertools import pairwise

import numpy as np
from torch import Tensor, nn

from bootdqn.common.specs import DiscreteSpec, EnvSpec
from bootdqn.networks.config import NetworkConfig
from bootdqn.networks.layers import BatchedLinear, FanOutLinear, FanOutTable, Flat, OneHotTable, draw_parameters


class Ensemble(nn.Module):
    """K Q-functions: observations (B, ...) -> Q-values (B, K, A)."""

    def __init__(self, torso: nn.Module, heads: list[BatchedLinear]) -> None:
        """Put K heads on a torso.

        Args:
            torso: What all heads share: observations (B, ...) -> features (B, F), or an index (B,) for a table.
            heads: The layers of the heads, with a ReLU between them; the first one fans out.
        """
        super().__init__()
        self.torso = torso
        self.heads = nn.ModuleList(heads)

    def forward(self, observation: Tensor) -> Tensor:
        """Map (B, ...) to (B, K, A)."""
        x = self.torso(observation)
        for layer in self.heads[:-1]:
            x = layer(x).relu()
        q: Tensor = self.heads[-1](x).transpose(0, 1)
        return q


def make_ensemble(config: NetworkConfig, spec: EnvSpec, rng: np.random.Generator) -> Ensemble:
    """Build an ensemble for `spec` with every parameter drawn from `rng`."""
    torso, features, fan_out = _torso(config, spec)
    widths = config.hidden_sizes if config.ensemble == "independent" else config.hidden_sizes[-1:]
    sizes = (*widths, spec.num_actions)
    heads = [fan_out(config.num_heads, features, sizes[0])]
    heads += [BatchedLinear(config.num_heads, before, after) for before, after in pairwise(sizes)]
    ensemble = Ensemble(torso, heads)
    draw_parameters(ensemble, rng)
    return ensemble


def _torso(config: NetworkConfig, spec: EnvSpec) -> tuple[nn.Module, int, type[BatchedLinear]]:
    """Return the torso, the number of its features, and the kind of layer that takes them."""
    observation = spec.observation
    shared = config.hidden_sizes[:-1] if config.ensemble == "shared" else ()
    if isinstance(observation, DiscreteSpec):
        if not shared:
            return nn.Identity(), observation.num_values, FanOutTable
        first: list[nn.Module] = [OneHotTable(observation.num_values, shared[0]), nn.ReLU()]
    else:
        if not shared:
            return Flat(), observation.size, FanOutLinear
        first = [Flat(), _linear(observation.size, shared[0]), nn.ReLU()]
    rest = [layer for before, after in pairwise(shared) for layer in (_linear(before, after), nn.ReLU())]
    return nn.Sequential(*first, *rest), shared[-1], FanOutLinear


def _linear(in_features: int, out_features: int) -> nn.Module:
    """Return an `nn.Linear` whose parameters are not drawn yet, so that no global generator is touched."""
    layer: nn.Module = nn.utils.skip_init(nn.Linear, in_features, out_features)  # type: ignore[no-untyped-call]
    return layer
