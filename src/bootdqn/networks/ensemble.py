"""The ensemble: an optional shared torso, then K heads."""

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from bootdqn.common.errors import UsageError
from bootdqn.common.specs import BoxSpec, DiscreteSpec, EnvSpec, ObservationSpec
from bootdqn.networks.config import NetworkConfig
from bootdqn.networks.layers import BatchedLinear, FanOutLinear, FanOutTable, OneHotTable, draw_parameters
from bootdqn.networks.torsos import Flat, convolutional, hidden_layers, is_image


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

    def forward_pair(self, observation: Tensor, next_observation: Tensor) -> tuple[Tensor, Tensor]:
        """Return the Q-values of both, reading the heads' weights once; gradients flow through the first only."""
        x = self.torso(observation)
        with torch.no_grad():
            y = self.torso(next_observation)
        for layer in self.heads[:-1]:
            x, y = layer.forward_pair(x, y)  # type: ignore[operator]
            x, y = x.relu(), y.relu()
        q, next_q = self.heads[-1].forward_pair(x, y)  # type: ignore[operator]
        return q.transpose(0, 1), next_q.transpose(0, 1)


def make_ensemble(config: NetworkConfig, spec: EnvSpec, rng: np.random.Generator) -> Ensemble:
    """Build an ensemble for `spec` with every parameter drawn from `rng`."""
    observation = spec.observation
    image = isinstance(observation, BoxSpec) and is_image(observation)
    if image and config.ensemble == "independent":
        raise UsageError("images need --ensemble shared (or auto): one convolutional torso for all heads")
    shared = config.ensemble == "shared" or image
    torso, features, fan_out = _torso(observation, config.hidden_sizes[:-1] if shared else ())
    widths = config.hidden_sizes[-1:] if shared else config.hidden_sizes
    sizes = (*widths, spec.num_actions)
    heads = [fan_out(config.num_heads, features, sizes[0])]
    heads += [BatchedLinear(config.num_heads, before, after) for before, after in pairwise(sizes)]
    ensemble = Ensemble(torso, heads)
    draw_parameters(ensemble, rng)
    return ensemble


def _torso(observation: ObservationSpec, widths: tuple[int, ...]) -> tuple[nn.Module, int, type[BatchedLinear]]:
    """Return a torso with hidden layers of `widths`, the number of its features, and the layer that takes them."""
    if isinstance(observation, DiscreteSpec):
        if not widths:
            return nn.Identity(), observation.num_values, FanOutTable
        table = OneHotTable(observation.num_values, widths[0])
        return nn.Sequential(table, nn.ReLU(), *hidden_layers(widths)), widths[-1], FanOutLinear
    first, features = convolutional(observation) if is_image(observation) else (Flat(), observation.size)
    sizes = (features, *widths)
    return nn.Sequential(first, *hidden_layers(sizes)), sizes[-1], FanOutLinear
