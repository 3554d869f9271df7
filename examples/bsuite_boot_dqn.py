"""bsuite's own JAX Bootstrapped DQN, acting by EVOI: one method is replaced, the learning is bsuite's.

Both agents play bsuite's DeepSea in bsuite's own loop. Needs bsuite and its stack: pip install -e '.[examples]'.
"""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # networks this small gain nothing from an accelerator

import haiku
import jax
import numpy as np
import optax
from bsuite.baselines import experiment
from bsuite.baselines.jax.boot_dqn import BootstrappedDqn
from bsuite.environments.deep_sea import DeepSea

import bootdqn

SIZE, MEMBERS, EPISODES, SEEDS = 6, 10, 100, range(2)


@jax.jit
def best_action(active, q):
    """Return the action with the highest `q[h, a] + evoi(a)`, from `active` (A,) and `q`, a list of K times (A,)."""
    return jax.numpy.argmax(active + bootdqn.evoi(jax.numpy.stack(q), reduce="sum"))


class EvoiBootstrappedDqn(BootstrappedDqn):
    """bsuite's agent, which adds the expected value of information to what the active member believes."""

    def select_action(self, timestep):
        """Return the action with the highest `q[h, a] + evoi(a)`."""
        self._total_steps += 1
        observation = timestep.observation[None]
        active, *q = [self._forward(member.params, observation)[0] for member in (self._active_head, *self._ensemble)]
        return int(best_action(active, q))


def make_agent(kind, environment, seed):
    """Return an agent with the paper's settings for DeepSea, but half the members."""
    actions = environment.action_spec()
    return kind(
        environment.observation_spec(),
        actions,
        network=lambda grid: haiku.nets.MLP([50, 50, actions.num_values])(haiku.Flatten()(grid)),
        num_ensemble=MEMBERS,
        batch_size=128,
        discount=0.99,
        replay_capacity=10_000,
        min_replay_size=128,
        sgd_period=1,
        target_update_period=SIZE,
        optimizer=optax.adam(1e-3),
        mask_prob=0.5,
        noise_scale=0.0,
        seed=seed,
    )


def good_episodes(kind, seed):
    """Train, and return which episodes reached the treasure: (EPISODES,) bool."""
    np.random.seed(seed)  # noqa: NPY002 - bsuite's agent draws from the global generator
    environment = DeepSea(SIZE, mapping_seed=seed)
    agent = make_agent(kind, environment, seed)
    bad = [0]
    for _ in range(EPISODES):
        experiment.run(agent, environment, num_episodes=1)
        bad.append(environment.bsuite_info()["total_bad_episodes"])
    return np.diff(bad) == 0


def main():
    """Train every seed both ways, and print the results side by side."""
    print(
        f"DeepSea N = {SIZE}, {MEMBERS} members, {EPISODES} episodes; random play finds the treasure once in {2**SIZE}"
    )
    for name, kind in (("bsuite's rule", BootstrappedDqn), ("EVOI", EvoiBootstrappedDqn)):
        found = [good_episodes(kind, seed) for seed in SEEDS]
        last = [f"{good[-20:].sum()} of 20" for good in found]
        print(f"{name:>13}: good episodes {[int(good.sum()) for good in found]}, among the last 20: {', '.join(last)}")


if __name__ == "__main__":
    main()
