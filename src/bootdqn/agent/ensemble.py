"""The ensemble: an optional shared torso, then K heads."""

from itertools import pairwise

import numpy as np
from torch import Tensor, nn

from bootdqn.agent.layers import BatchedLinear, FanOutLinear, FanOutTable, OneHotTable, sample_parameters
from bootdqn.agent.torsos import Flat, convolutional, hidden_layers, is_image
from bootdqn.common.errors import UsageError
from bootdqn.common.specs import BoxSpec, DiscreteSpec, EnvSpec, ObservationSpec
from bootdqn.config.agent import NetworkConfig

HEADS = "heads."
"""Prefix of the names of the heads' parameters, whose first axis is K."""


class Ensemble(nn.Module):
    """K Q-functions: observations (B, ...) -> Q-values (B, K, A)."""

    def __init__(self, torso: nn.Module, heads: list[BatchedLinear], prior: "Prior | None" = None) -> None:
        """Put K heads on a torso.

        Args:
            torso: Shared by all heads: observations (B, ...) -> features (B, F), or an index (B,) for a table.
            heads: The layers of the heads, with a ReLU between them; the first one fans out.
            prior: Added to the Q-values, and never learned.
        """
        super().__init__()
        self.torso = torso
        self.heads = nn.ModuleList(heads)
        self.prior = prior

    def learned(self) -> dict[str, nn.Parameter]:
        """Return the learned parameters by name: all but the prior's."""
        return {name: value for name, value in self.named_parameters() if not name.startswith("prior.")}

    def forward(self, observation: Tensor) -> Tensor:
        """Map (B, ...) to (B, K, A)."""
        x = self.torso(observation)
        for layer in self.heads[:-1]:
            x = layer(x).relu()
        q: Tensor = self.heads[-1](x).permute(2, 0, 1)
        return q if self.prior is None else q + self.prior(observation)


class Prior(nn.Module):
    """Randomised prior functions (Osband et al. 2018): K random Q-functions that are never learned, times a scale.

    A head learns the difference to its own prior, so heads keep disagreeing where there is no data.
    """

    def __init__(self, ensemble: Ensemble, scale: float) -> None:
        super().__init__()
        self.ensemble = ensemble.requires_grad_(False)
        self.scale = scale

    def forward(self, observation: Tensor) -> Tensor:
        """Map (B, ...) to (B, K, A)."""
        q: Tensor = self.scale * self.ensemble(observation)
        return q


def make_ensemble(config: NetworkConfig, spec: EnvSpec, rng: np.random.Generator) -> Ensemble:
    """Return an ensemble for `spec`, with its prior if it has one, every parameter sampled from `rng`.

    Raises:
        UsageError: The observations are images and the configuration asks for independent networks.
    """
    ensemble = _sample_ensemble(config, spec, rng)
    if config.prior_scale:
        ensemble.prior = Prior(_sample_ensemble(config, spec, rng), config.prior_scale)
    return ensemble


def _sample_ensemble(config: NetworkConfig, spec: EnvSpec, rng: np.random.Generator) -> Ensemble:
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
    sample_parameters(ensemble, rng, config.embedding_scale)
    return ensemble


def _torso(observation: ObservationSpec, widths: tuple[int, ...]) -> tuple[nn.Module, int, type[BatchedLinear]]:
    """Return a torso with hidden layers of `widths`, its number of features, and the type of the heads' first layer."""
    if isinstance(observation, DiscreteSpec):
        if not widths:
            return nn.Identity(), observation.num_values, FanOutTable
        table = OneHotTable(observation.num_values, widths[0])
        return nn.Sequential(table, nn.ReLU(), *hidden_layers(widths)), widths[-1], FanOutLinear
    first, features = convolutional(observation) if is_image(observation) else (Flat(), observation.size)
    sizes = (features, *widths)
    return nn.Sequential(first, *hidden_layers(sizes)), sizes[-1], FanOutLinear
