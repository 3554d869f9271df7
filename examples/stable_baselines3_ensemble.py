"""An ensemble of Stable-Baselines3 DQNs that chooses by EVOI.

The models share one stream of experience; each keeps its own half of it in its own replay buffer and learns by its own
`train`. Beside it stand the same ensemble without EVOI and play by chance. Needs Stable-Baselines3:
pip install stable-baselines3.
"""

import gymnasium
import numpy as np
import torch
from stable_baselines3 import DQN
from stable_baselines3.common.logger import configure
from stable_baselines3.common.utils import polyak_update

import bootdqn

MEMBERS, STEPS, SEED = 4, 2000, 0
LEARNING_STARTS, TRAIN_EVERY, GRADIENT_STEPS, BATCH_SIZE, TARGET_SHARE = 200, 8, 4, 64, 0.1
MASK_PROBABILITY = 0.5


def make_models(env):
    """Return DQNs that differ in their seed, without a logger's output."""
    network = {"net_arch": [64, 64]}
    settings = {"learning_rate": 2.5e-3, "buffer_size": STEPS, "policy_kwargs": network, "device": "cpu"}
    models = [DQN("MlpPolicy", env, seed=MEMBERS * SEED + k, **settings) for k in range(MEMBERS)]
    for model in models:
        model.set_logger(configure(None, []))
    return models


def q_values(models, observation):
    """Return Q-values (K, A) of one observation."""
    with torch.no_grad():
        batch, _ = models[0].policy.obs_to_tensor(observation)
        return torch.cat([model.q_net(batch) for model in models])


def learn(models):
    """Let each model learn from its own buffer; `train` leaves the target network to the caller."""
    for model in models:
        model.train(gradient_steps=GRADIENT_STEPS, batch_size=BATCH_SIZE)
        polyak_update(model.q_net.parameters(), model.q_net_target.parameters(), tau=TARGET_SHARE)


def train(env, strategy):
    """Return the models, and how often the active one was overruled."""
    rng = np.random.default_rng(SEED)
    models, overruled = make_models(env), 0
    observation, _ = env.reset(seed=SEED)
    head = int(rng.integers(MEMBERS))
    for step in range(1, STEPS + 1):
        q = q_values(models, observation)
        action = int(strategy.select(q, head))
        overruled += action != int(q[head].argmax())
        following, reward, terminated, truncated, info = env.step(action)
        transition = [np.array([value]) for value in (observation, following, action, reward, terminated)]
        for model in models:
            if rng.random() < MASK_PROBABILITY:
                model.replay_buffer.add(*transition, [info])
        observation = following
        if terminated or truncated:
            observation, _ = env.reset()
            head = int(rng.integers(MEMBERS))
        if step >= LEARNING_STARTS and step % TRAIN_EVERY == 0:
            learn(models)
    return models, overruled / STEPS


def mean_return(env, policy, episodes=10):
    """Return what an episode pays on average to `policy`, from an observation to an action."""
    total = 0.0
    for episode in range(episodes):
        observation, _ = env.reset(seed=1000 + episode)
        over = False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(policy(observation))
            total, over = total + reward, terminated or truncated
    return total / episodes


def main():
    """Train with and without EVOI, and print what the vote of the models is worth."""
    torch.set_num_threads(1)  # the networks are too small for more
    env = gymnasium.make("CartPole-v1")
    rng = np.random.default_rng(SEED)
    print(f"CartPole, {MEMBERS} DQNs, {STEPS} steps, mean return of 10 episodes (at most 500)")
    print(f"random: {mean_return(env, lambda _: int(rng.integers(env.action_space.n))):.1f}")
    for strategy in (bootdqn.Greedy(), bootdqn.Evoi()):
        models, overruled = train(env, strategy)
        worth = mean_return(env, lambda observation, models=models: int(bootdqn.vote(q_values(models, observation))))
        print(
            f"{strategy.name:>6}: {worth:.1f} by vote; the active model was overruled in {overruled:.1%} of the steps"
        )


if __name__ == "__main__":
    main()
