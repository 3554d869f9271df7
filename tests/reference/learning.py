"""A slow, obvious learner: K separate networks of `nn.Linear` layers, one loop over heads and one over transitions.

Everything is computed in double precision from explicit vectors (one-hot for discrete observations), so that what
differs from a library in single precision is that library's rounding. Written from the protocol:

- target of head h: `r + discount * Qtarget_h(s', argmax_a Q_h(s', a))`, nothing added after a terminated transition;
  without double Q-learning the target network also chooses the action;
- a prior, if the state has one, is added to the values of any network, times its scale;
- loss of head h: sum over the transitions it owns of `weight * loss(td)`, over `max(1, how many it owns)`;
- loss of the ensemble: mean over heads; one step of PyTorch's Adam with its default settings.

State travels as the library's `get_state` dictionary: heads are stored (K, in, out), `nn.Linear` holds (out, in).
"""

import copy
from itertools import pairwise

import numpy as np
import torch
from torch import nn

PARTS = ("online", "target", "first_moment", "second_moment")


def one_hot(index, num_values):
    """Return the one-hot vector of `index` as doubles."""
    vector = torch.zeros(num_values, dtype=torch.float64)
    vector[int(index)] = 1
    return vector


def separate_networks(sizes, num_heads):
    """Return K separate networks of `nn.Linear` layers with ReLU between them, in double precision."""
    networks = []
    for _ in range(num_heads):
        layers = []
        for before, after in pairwise(sizes):
            layers += [nn.Linear(before, after, dtype=torch.float64), nn.ReLU()]
        networks.append(nn.Sequential(*layers[:-1]))
    return networks


class SlowLearner:
    """Learns like the library's learners from the same state, slowly.

    Args:
        state: Result of a learner's `get_state`; it determines the architecture but for the next argument.
        num_values: How many discrete observations there are, or None for arrays.
        loss: `"squared"` or `"huber"`.
        learning_rate: Step size of Adam.
        prior_scale: Factor of the prior; 0 where there is none.
        double_q: Whether the online networks choose the next action.
        target_rate: How far the target networks move towards the online ones.
    """

    def __init__(
        self, state, *, num_values, loss="squared", learning_rate=1e-3, prior_scale=0.0, double_q=True, target_rate=1.0
    ):
        self._prior_scale, self._double_q, self._target_rate = prior_scale, double_q, target_rate
        self._num_values = num_values
        self._loss = loss
        names = [name.removeprefix("online.") for name in state if name.startswith("online.")]
        self._torso_layers = _layers(names, "torso")
        self._head_layers = _layers(names, "heads")
        self._num_heads = len(state[f"online.{self._head_layers[-1]}.bias"])
        self._online = self._build(state)
        self._prior = self._build(state) if prior_scale else None
        self._target = copy.deepcopy(self._online)
        parameters = [parameter for network in self._online for parameter in network.parameters()]
        self._adam = torch.optim.Adam(_unique(parameters), lr=learning_rate, fused=False, foreach=False)
        self.set_state(state)

    def q_values(self, observation, networks=None):
        """Return Q-values (B, K, A) of observations (B, ...)."""
        x = self._vectors(observation)
        return torch.stack([self._head_values(networks or self._online, k, x) for k in range(self._num_heads)], dim=1)

    def update(self, batch):
        """Take one step; return head losses (K,) and mean absolute TD errors over the owners (B,)."""
        losses, errors = [], [[] for _ in batch.action]
        x = self._vectors(batch.observation)
        for k in range(self._num_heads):
            q = self._head_values(self._online, k, x)
            targets = self._td_targets(k, batch)
            loss, owned = 0 * q.sum(), 0
            for b in np.flatnonzero(batch.mask[:, k]):
                error = q[b, batch.action[b]] - targets[b]
                loss = loss + float(batch.weight[b]) * self._loss_of(error)
                errors[b].append(abs(error.item()))
                owned += 1
            losses.append(loss / max(1, owned))
        self._adam.zero_grad()
        torch.stack(losses).mean().backward()
        self._adam.step()
        return np.array([loss.item() for loss in losses]), np.array([np.mean(e) if e else 0.0 for e in errors])

    def update_target(self):
        """Move the target networks towards the online ones."""
        moved, rate = [], self._target_rate  # all before any is put in place: heads may share a torso
        for target, online in zip(self._target, self._online, strict=True):
            old, new = target.state_dict(), online.state_dict()
            moved.append({name: (1 - rate) * old[name] + rate * new[name] for name in old})
        for target, values in zip(self._target, moved, strict=True):
            target.load_state_dict(values)

    @torch.no_grad()
    def _td_targets(self, k, batch):
        """Return the targets of head k for each transition."""
        x = self._vectors(batch.next_observation)
        online, target = self._head_values(self._online, k, x).tolist(), self._head_values(self._target, k, x).tolist()
        targets = []
        for b in range(len(x)):
            choosing = online[b] if self._double_q else target[b]
            best = choosing.index(max(choosing))
            bootstrap = float(batch.discount[b]) * target[b][best] if batch.discount[b] != 0 else 0.0
            targets.append(float(batch.reward[b]) + bootstrap)
        return targets

    def _head_values(self, networks, k, x):
        """Return the values of head k of `networks`, its prior added."""
        if self._prior is None:
            return networks[k](x)
        with torch.no_grad():
            prior = self._prior_scale * self._prior[k](x)
        return networks[k](x) + prior

    def _loss_of(self, error):
        if self._loss == "squared":
            return error * error
        return error * error / 2 if abs(error.item()) <= 1 else error.abs() - 0.5

    def _vectors(self, observation):
        if self._num_values is not None:
            return torch.stack([one_hot(index, self._num_values) for index in observation])
        return torch.from_numpy(np.asarray(observation, np.float64).reshape(len(observation), -1))

    # State, in the names and layouts of the library

    def get_state(self):
        """Return the state as the library's learners write it, in double precision."""
        values = {part: [] for part in PARTS}
        for networks, part in ((self._online, "online"), (self._target, "target")):
            values[part] = [dict(network.named_parameters()) for network in networks]
        for key, part in (("exp_avg", "first_moment"), ("exp_avg_sq", "second_moment")):
            for network in values["online"]:
                values[part].append({name: self._moment(parameter, key) for name, parameter in network.items()})
        state = {f"{part}.{name}": array for part in PARTS for name, array in self._write(values[part]).items()}
        steps = [int(entry["step"]) for entry in self._adam.state.values()]
        return state | {"adam_steps": np.asarray(steps[0] if steps else 0, np.int64)}

    def set_state(self, state):
        """Continue from what a learner's `get_state` returned."""
        for k in range(self._num_heads):
            for networks, part in ((self._online, "online"), (self._target, "target")):
                values = self._read(state, part, k)
                networks[k].load_state_dict(values)
            if self._prior is not None:
                self._prior[k].load_state_dict(self._read(state, "online.prior.ensemble", k))
            first, second = self._read(state, "first_moment", k), self._read(state, "second_moment", k)
            for name, parameter in self._online[k].named_parameters():
                self._adam.state[parameter] = {
                    "step": torch.tensor(float(state["adam_steps"])),
                    "exp_avg": first[name].clone(),
                    "exp_avg_sq": second[name].clone(),
                }

    def _moment(self, parameter, key):
        return self._adam.state.get(parameter, {}).get(key, torch.zeros_like(parameter))

    def _build(self, state):
        """Return K networks whose layers of the torso are one and the same object."""
        biases = [state[f"online.{layer}.bias"] for layer in (*self._torso_layers, *self._head_layers)]
        first = self._torso_layers[0] if self._torso_layers else self._head_layers[0]
        transposed = bool(self._torso_layers) and self._num_values is None
        inputs = state[f"online.{first}.weight"].shape[-1 if transposed else -2]
        networks = separate_networks([inputs, *(bias.shape[-1] for bias in biases)], self._num_heads)
        for network in networks[1:]:
            for layer in range(2 * len(self._torso_layers)):
                network[layer] = networks[0][layer]
        return networks

    def _read(self, state, part, k):
        """Return head k's parameters, torso included, under the names of its `nn.Sequential`."""
        values = {}
        for number, layer in enumerate((*self._torso_layers, *self._head_layers)):
            weight, bias = (torch.tensor(state[f"{part}.{layer}.{kind}"]).double() for kind in ("weight", "bias"))
            if layer in self._head_layers:
                weight, bias = weight[k], bias[k]
            values[f"{2 * number}.weight"] = weight.T.contiguous() if self._is_in_out(layer) else weight
            values[f"{2 * number}.bias"] = bias
        return values

    def _write(self, values):
        """Undo `_read`, for the values of all heads."""
        state = {}
        for number, layer in enumerate((*self._torso_layers, *self._head_layers)):
            for kind in ("weight", "bias"):
                arrays = [head[f"{2 * number}.{kind}"].detach().numpy() for head in values]
                if kind == "weight" and self._is_in_out(layer):
                    arrays = [array.T for array in arrays]
                state[f"{layer}.{kind}"] = np.stack(arrays) if layer in self._head_layers else arrays[0].copy()
        return state

    def _is_in_out(self, layer):
        """Heads and tables hold their weights (in, out); the other layers of a torso hold them (out, in)."""
        return layer in self._head_layers or (self._num_values is not None and layer == self._torso_layers[0])


def _layers(names, part):
    """Return the layers below `part` by name, in order."""
    layers = {name.rpartition(".")[0] for name in names if name.startswith(part)}
    return sorted(layers, key=lambda layer: int(layer.rpartition(".")[2]))


def _unique(parameters):
    return list({id(parameter): parameter for parameter in parameters}.values())
