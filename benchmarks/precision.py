"""Does bfloat16 harm? TD errors on real play beside float32's, and one small task learned over ten seeds with each.

The rule, written before the first run: bf16 counts as equivalent on CartPole if the 90 % confidence interval (Welch) of
the difference between the mean evaluation returns, averaged over the evaluations after 4,000 of 12,000 steps, lies
within +-75 of 500, and TD errors on Gravitar count as close if they differ by less than 2 % of the largest Q-value.

The second rule turned out to ask for too much: where two actions are worth nearly the same, bf16 may choose the other
one for the double-DQN target, and the target networks may value the two quite differently. Both numbers are therefore
printed: over all errors, which the rule is about, and over those with the same choice.

    python -m benchmarks.precision
    python -m benchmarks.precision --seeds 3 --json precision.json
"""

import argparse
import itertools
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from scipy import stats

from benchmarks.results import Row, write
from bootdqn.agent.autograd_learner import AutogradLearner
from bootdqn.config.settings import from_flat
from bootdqn.config.train import resolve
from bootdqn.runs.directory import RunDirectory
from bootdqn.runs.threads import pinned_threads
from bootdqn.training.loop import make_components, train
from bootdqn.training.run import train_run

MARGIN = 75.0
CLOSE = 0.02
TOTAL_STEPS, EVALUATE_EVERY, COUNT_AFTER = 12_000, 1000, 4000
PRECISIONS = ("fp32", "bf16")


class Difference(NamedTuple):
    """How far TD errors of one batch of Gravitar are apart."""

    largest: float
    largest_with_same_choice: float
    same_choice: float
    """Fraction of heads and transitions for which both choose the same next action."""
    largest_q: float


def td_error_difference() -> Difference:
    """Return how far TD errors in bf16 are from those in float32, with the same weights on the same batch."""
    settings = {"environment": "atari", "game": "Gravitar", "learning_starts": 50, "replay_capacity": 5000}
    settings["engine"] = "autograd"  # the compiled kernels give no TD errors by head
    config = resolve(from_flat(settings))
    components = make_components(config)
    for _ in itertools.islice(train(config, components), 400):
        pass
    batch = components.replay.sample(32, np.random.default_rng(0))
    reduced_config = resolve(from_flat(settings | {"precision": "bf16"}))
    reduced = make_components(reduced_config).learner
    reduced.set_state(components.learner.get_state())
    assert isinstance(components.learner, AutogradLearner)
    assert isinstance(reduced, AutogradLearner)
    with torch.no_grad():
        exact, rounded = (learner.td_errors(batch).numpy() for learner in (components.learner, reduced))
    choices = [learner.q_values(batch.next_observation).argmax(axis=-1) for learner in (components.learner, reduced)]
    same, apart = choices[0] == choices[1], np.abs(exact - rounded)
    largest_q = np.abs(components.learner.q_values(batch.observation)).max()
    return Difference(float(apart.max()), float(apart[same].max()), float(same.mean()), float(largest_q))


def mean_return(directory: Path, seed: int, precision: str) -> float:
    """Train on CartPole and return the mean evaluation return after the first steps."""
    settings = {"environment": "gym", "env_id": "CartPole-v1", "total_steps": TOTAL_STEPS, "precision": precision}
    path = directory / f"{precision}-{seed}"
    train_run(from_flat(settings | {"seed": seed, "eval_every_steps": EVALUATE_EVERY, "eval_max_steps": 5000}), path)
    evaluations = RunDirectory(path).read_metrics("evaluation")
    return float(np.mean([record["mean_return"] for record in evaluations if record["step"] > COUNT_AFTER]))


def main() -> None:
    """Measure and print; the verdict comes last."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="seeds of each precision (default: 10)")
    parser.add_argument("--json", type=Path, help="write the rows and the machine to this file")
    arguments = parser.parse_args()
    with pinned_threads(1):
        difference = td_error_difference()
    print(
        f"TD errors on Gravitar differ by at most {difference.largest:.2e}, and by "
        f"{difference.largest_with_same_choice:.2e} where both choose the same next action "
        f"({100 * difference.same_choice:.1f} %); the largest Q-value is {difference.largest_q:.3f}",
        flush=True,
    )
    returns: dict[str, list[float]] = {precision: [] for precision in PRECISIONS}
    with tempfile.TemporaryDirectory() as directory:
        for seed, precision in itertools.product(range(arguments.seeds), PRECISIONS):
            returns[precision].append(mean_return(Path(directory), seed, precision))
            print(f"CartPole, seed {seed}, {precision}: {returns[precision][-1]:.1f}", flush=True)
    test = stats.ttest_ind(returns["bf16"], returns["fp32"], equal_var=False)
    low, high = test.confidence_interval(0.9)
    print(f"bf16 less fp32: {np.mean(returns['bf16']) - np.mean(returns['fp32']):+.1f}, 90 % [{low:+.1f}, {high:+.1f}]")
    close, equivalent = difference.largest < CLOSE * difference.largest_q, low > -MARGIN and high < MARGIN
    print(f"TD errors close: {close}; equivalent on CartPole within {MARGIN:g}: {equivalent}")
    what, error = "bf16, largest difference of a TD error", difference.largest
    same = difference.largest_with_same_choice
    rows = [
        Row(what, "largest Q-value", error, "", error / difference.largest_q, f"<= {CLOSE}"),
        Row(f"{what}, same choice", "largest Q-value", same, "", same / difference.largest_q, f"<= {CLOSE}"),
        Row(
            f"bf16, mean return on CartPole, {arguments.seeds} seeds",
            f"90 % interval of the difference to fp32, in units of {MARGIN:g}",
            float(np.mean(returns["bf16"])),
            "",
            max(abs(low), abs(high)) / MARGIN,
            "<= 1",
        ),
    ]
    write(arguments.json, rows)


if __name__ == "__main__":
    main()
