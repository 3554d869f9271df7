"""Run directories with made-up contents, to test their readers."""

import json

import numpy as np

from bootdqn.config.settings import default_settings

DEFAULTS = default_settings()
MEASURES = ("vote_count_variance", "vote_entropy", "distinct_actions", "action_index_variance")
GAMES = ("Gravitar", "Solaris", "PrivateEye", "Venture", "Alien", "Hero")


def write_run_dir(path, config, summary=None, metrics=()):
    """Write one run directory."""
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config))
    if summary is not None:
        (path / "summary.json").write_text(json.dumps(summary))
    if metrics:
        (path / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in metrics))


def write_deep_sea(
    path, strategy="gain", size=5, seed=0, cap=50, solved=9, strict=..., status="finished", bad=(), **changes
):
    """Write a DeepSea run; `bad` has a flag for each episode, `changes` are further settings."""
    config = {"environment": "deep-sea", "strategy": strategy, "size": size, "seed": seed, "max_episodes": cap}
    config |= changes
    summary = {"status": status, "solved_at": solved, "solved_at_strict": solved if strict is ... else strict}
    episodes = [
        {"kind": "episode", "episode": number, "step": 5 * number, "bad": value}
        for number, value in enumerate(bad, start=1)
    ]
    write_run_dir(path, config, summary, episodes)


def write_atari(
    path, game="Hero", strategy="evoi", seed=0, num_heads=10, scores=(1.0, 3.0), every=1_000_000, **changes
):
    """Write an Atari run with these evaluations; `diversity` is a value for all four measures, or a series of each."""
    diversity = changes.pop("diversity", 1.5)
    status = changes.pop("status", "finished")
    if not isinstance(diversity, dict):
        diversity = dict.fromkeys(MEASURES, [diversity] * len(scores))
    frames = [every * number for number in range(1, len(scores) + 1)]
    config = {"environment": "atari", "game": game, "strategy": strategy, "seed": seed, "num_heads": num_heads}
    config |= {"total_frames": frames[-1]} | changes
    metrics = [
        {"kind": "evaluation", "frames": at, "step": at // 4, "mean_return": score}
        | dict(zip(diversity, values, strict=True))
        for at, score, *values in zip(frames, scores, *diversity.values(), strict=True)
    ]
    write_run_dir(path, config, {"status": status, "seconds": 100.0 * num_heads}, metrics)


def write_study(root, seeds=3, evaluations=30, every=1_000_000):
    """Write a whole made-up Atari study: four strategies on six games, and K varied on Hero."""
    rng = np.random.default_rng(0)
    for game in GAMES:
        for level, strategy in enumerate(("greedy", "ucb", "gain", "evoi")):
            for seed in range(seeds):
                scores = np.cumsum(rng.uniform(0, 100 * (1 + level), evaluations)).round(1).tolist()
                path = root / game / strategy / f"seed-{seed}"
                write_atari(path, game, strategy, seed, scores=scores, every=every, diversity=1 + 0.1 * level)
    for num_heads in (2, 6, 12):
        scores = np.cumsum(rng.uniform(0, 30 * num_heads, evaluations)).round(1).tolist()
        write_atari(root / "heads" / str(num_heads), num_heads=num_heads, scores=scores, every=every)


def write_gym(path, strategy="gain", seed=0, found=(1.0, 2.0, 3.0), env_id="CartPole-v1", status="finished", **changes):
    """Write a run of `train gym`; `found` are its recent return, its last and its best evaluation.

    `episodes` and `evaluations` are its records, as pairs of a step and a return.
    """
    episodes, evaluations = changes.pop("episodes", ()), changes.pop("evaluations", ())
    config = {"environment": "gym", "env_id": env_id, "strategy": strategy, "seed": seed, "total_steps": 1000}
    names = ("recent_return", "last_evaluation", "max_evaluation")
    metrics = [
        {"kind": "episode", "episode": number, "step": step, "return": value}
        for number, (step, value) in enumerate(episodes, start=1)
    ]
    metrics += [{"kind": "evaluation", "step": step, "mean_return": value} for step, value in evaluations]
    write_run_dir(path, config | changes, {"status": status} | dict(zip(names, found, strict=True)), metrics)
