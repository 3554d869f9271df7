"""Does bfloat16 harm? TD errors on real play beside float32's, and one small task learned over ten seeds with each.

The rule, written before the first run: bf16 counts as equivalent on CartPole if the 90 % confidence interval (Welch) of
the difference between the mean evaluation returns, averaged over the evaluations after 4,000 of 12,000 steps, lies
within +-75 of 500, and TD errors on Gravitar count as close if they differ by less than 2 % of the largest Q-value.

    python benchmarks/precision.py
    python benchmarks/precision.py --seeds 3 --json precision.json
"""

import argparse
import itertools
import json
import tempfile
from pathlib import Path

import numpy as np
import torch
from scipy import stats

from bootdqn.agent.learner import AutogradLearner
from bootdqn.common.run_folder import RunFolder
from bootdqn.training.config import from_flat, resolve
from bootdqn.training.loop import make_parts, train
from bootdqn.training.run import run
from bootdqn.training.threads import pinned_threads

MARGIN = 75.0
CLOSE = 0.02
TOTAL_STEPS, EVALUATE_EVERY, COUNT_AFTER = 12_000, 1000, 4000
PRECISIONS = ("fp32", "bf16")


def td_error_difference() -> tuple[float, float]:
    """Return the largest difference of TD errors on one batch of Gravitar, and the largest Q-value of it."""
    settings = {"environment": "atari", "game": "Gravitar", "learning_starts": 50, "replay_capacity": 5000}
    config = resolve(from_flat(settings))
    parts = make_parts(config)
    for _ in itertools.islice(train(config, parts), 400):
        pass
    batch = parts.replay.sample(32, np.random.default_rng(0))
    reduced_config = resolve(from_flat(settings | {"precision": "bf16"}))
    reduced = make_parts(reduced_config).learner
    reduced.set_state(parts.learner.get_state())
    assert isinstance(parts.learner, AutogradLearner)
    assert isinstance(reduced, AutogradLearner)
    with torch.no_grad():
        exact, rounded = (learner.td_errors(batch).numpy() for learner in (parts.learner, reduced))
    largest = np.abs(parts.learner.q_values(batch.observation)).max()
    return float(np.abs(exact - rounded).max()), float(largest)


def mean_return(folder: Path, seed: int, precision: str) -> float:
    """Train on CartPole and return the mean evaluation return after the first steps."""
    settings = {"environment": "gym", "env_id": "CartPole-v1", "total_steps": TOTAL_STEPS, "precision": precision}
    path = folder / f"{precision}-{seed}"
    run(from_flat(settings | {"seed": seed, "eval_every_frames": EVALUATE_EVERY, "eval_max_steps": 5000}), path)
    evaluations = RunFolder(path).read_metrics("evaluation")
    return float(np.mean([record["mean_return"] for record in evaluations if record["step"] > COUNT_AFTER]))


def main() -> None:
    """Measure and print; the verdict comes last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="seeds of each precision (default: 10)")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    arguments = parser.parse_args()
    with pinned_threads(1):
        difference, largest = td_error_difference()
    print(f"TD errors on Gravitar differ by at most {difference:.2e}; the largest Q-value is {largest:.3f}", flush=True)
    returns: dict[str, list[float]] = {precision: [] for precision in PRECISIONS}
    with tempfile.TemporaryDirectory() as folder:
        for seed, precision in itertools.product(range(arguments.seeds), PRECISIONS):
            returns[precision].append(mean_return(Path(folder), seed, precision))
            print(f"CartPole, seed {seed}, {precision}: {returns[precision][-1]:.1f}", flush=True)
    test = stats.ttest_ind(returns["bf16"], returns["fp32"], equal_var=False)
    low, high = test.confidence_interval(0.9)
    print(f"bf16 less fp32: {np.mean(returns['bf16']) - np.mean(returns['fp32']):+.1f}, 90 % [{low:+.1f}, {high:+.1f}]")
    close, equivalent = difference < CLOSE * largest, low > -MARGIN and high < MARGIN
    print(f"TD errors close: {close}; equivalent on CartPole within {MARGIN:g}: {equivalent}")
    if arguments.json:
        numbers = {"td_difference": difference, "largest_q": largest, "returns": returns, "interval": [low, high]}
        arguments.json.write_text(json.dumps(numbers, indent=2) + "\n")


if __name__ == "__main__":
    main()
