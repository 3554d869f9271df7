"""Your own ensemble in NumPy: ten tables of Q-values learn to cross FrozenLake, and EVOI decides what they try.

What bootdqn adds is one line, `strategy.select(q[:, state], head)`; the rest is plain Q-learning in which each head
learns from its own half of the steps. The same agents without EVOI stand beside.
"""

import gymnasium
import numpy as np

import bootdqn

HEADS, EPISODES, SEEDS = 10, 200, range(10)
STEP_SIZE, DISCOUNT, MASK_PROBABILITY, INITIAL_SPREAD = 0.5, 0.9, 0.5, 0.1


def train(env, strategy, seed):
    """Return the tables (K, S, A), the episode that first reached the goal, and how often the head was overruled."""
    rng = np.random.default_rng(seed)
    q = rng.normal(0, INITIAL_SPREAD, (HEADS, env.observation_space.n, env.action_space.n))
    first_goal, steps, overruled = np.inf, 0, 0
    for episode in range(EPISODES):
        state, _ = env.reset(seed=seed if episode == 0 else None)
        head, over = rng.integers(HEADS), False
        while not over:
            action = int(strategy.select(q[:, state], head))
            steps, overruled = steps + 1, overruled + (action != q[head, state].argmax())
            next_state, reward, terminated, truncated, _ = env.step(action)
            target = reward + DISCOUNT * (not terminated) * q[:, next_state].max(axis=-1)
            mask = rng.random(HEADS) < MASK_PROBABILITY
            q[:, state, action] += STEP_SIZE * mask * (target - q[:, state, action])
            first_goal = min(first_goal, episode + 1) if reward else first_goal
            state, over = next_state, terminated or truncated
    return q, first_goal, overruled / steps


def crosses(env, q):
    """Return whether the greedy majority vote of the heads reaches the goal."""
    state, _ = env.reset()
    reward = over = False
    while not over:
        state, reward, terminated, truncated, _ = env.step(int(bootdqn.vote(q[:, state])))
        over = terminated or truncated
    return reward > 0


def main():
    """Train every seed both ways, and print how the votes do."""
    env = gymnasium.make("FrozenLake-v1", is_slippery=False)
    print(f"FrozenLake 4x4 without slipping, {HEADS} heads, {EPISODES} episodes, {len(SEEDS)} seeds")
    for strategy in (bootdqn.Greedy(), bootdqn.Evoi(reduce="mean")):
        tables, first_goals, overruled = zip(*(train(env, strategy, seed) for seed in SEEDS), strict=True)
        episodes = ", ".join(f"{episode:g}" for episode in sorted(first_goals))
        print(f"{strategy.name:>6}: success rate of the vote {np.mean([crosses(env, q) for q in tables]):.0%}")
        print(f"        first goal in episode {episodes}; median {np.median(first_goals):g}")
        print(f"        active head overruled in {np.mean(overruled):.1%} of the steps")


if __name__ == "__main__":
    main()
