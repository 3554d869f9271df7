"""Small runs: some hundred steps, networks of a few units, a replay that wraps, evaluations, episodes cut short."""

DEEP_SEA_STEPS, LEARNING_STARTS, CAPACITY, EVALUATION_EVERY = 200, 40, 100, 40
DEEP_SEA = {
    "environment": "deep-sea",
    "update_every": 1,
    "size": 5,
    "deterministic": False,
    "max_episodes": DEEP_SEA_STEPS // 5,
    "stop_when_solved": False,
    "num_heads": 4,
    "hidden_sizes": [8, 8],
    "batch_size": 16,
    "learning_starts": LEARNING_STARTS,
    "replay_capacity": CAPACITY,
    "log_every": 7,
    "eval_every_steps": EVALUATION_EVERY,
    "eval_episodes": 2,
}
BEYOND_THE_PAPER = {
    "prior_scale": 2.0,
    "replay": "prioritized",
    "beta_steps": 150,
    "n_step": 3,
    "target_every": 1,
    "target_rate": 0.1,
    "double_q": False,
    "epsilon": 0.5,
    "epsilon_end": 0.1,
    "epsilon_steps": 100,
    "info_bonus": 0.1,
    "strategy": "boltzmann",
}

GAME_STEPS = 120
_GAME = {
    "num_heads": 3,
    "batch_size": 8,
    "learning_starts": 24,
    "target_every": 30,
    "replay_capacity": 80,
    "log_every": 5,
    "threads": 1,
}
ATARI = _GAME | {
    "environment": "atari",
    "game": "Gravitar",
    "total_frames": 4 * GAME_STEPS,
    "max_episode_frames": 240,
    "screen_size": 36,
    "hidden_sizes": [12],
    "eval_every_frames": 200,
    "eval_episodes": 1,
    "eval_max_steps": 8,
}
MINATAR = _GAME | {
    "environment": "minatar",
    "game": "asterix",
    "sticky": 0.5,
    "total_steps": GAME_STEPS,
    "hidden_sizes": [8],
    "eval_every_steps": 50,
    "eval_episodes": 2,
    "eval_max_steps": 20,
}
GYM = _GAME | {
    "environment": "gym",
    "env_id": "CartPole-v1",
    "total_steps": GAME_STEPS,
    "hidden_sizes": [8],
    "eval_every_steps": 50,
    "eval_episodes": 2,
    "eval_max_steps": 20,
}
