"""The figures of the docs, each with its alternative text and caption."""

from collections.abc import Callable
from typing import NamedTuple

import pandas as pd
from matplotlib.figure import Figure

from bootdqn.reports.ablation_figures import ABLATION_CAPTION, FRONTIERS_CAPTION, ablation, frontiers
from bootdqn.reports.action_statistics import ACTING_CAPTION, acting_figure, runs_by_task
from bootdqn.reports.atari import with_paper_heads
from bootdqn.reports.atari_figures import diversity, heads, profiles, scores
from bootdqn.reports.deep_sea_figures import BY_SIZE_CAPTION, episodes_figure
from bootdqn.reports.suites import MINATAR, Suite
from reproduction import studies
from reproduction.freeway import freeway_figure
from reproduction.frontier import frontier_figure
from reproduction.minigrid import doorkey_figure
from reproduction.swing_up import swing_up_figure


class DocsFigure(NamedTuple):
    """A figure on a page of the docs."""

    plot: Callable[[str], Figure]
    """Plots the figure from the runs of a study."""
    alt: str
    caption: str


def episodes_by_size(study: str) -> Figure:
    """Plot episodes to solve DeepSea against the size of the grid."""
    return episodes_figure(studies.deep_sea_runs(study))[0]


def episodes_by_variant(study: str) -> Figure:
    """Plot episodes to solve DeepSea, one row for each variant."""
    return ablation(studies.deep_sea_runs(study))


def frontier_by_strategy(study: str) -> Figure:
    """Plot episodes to solve DeepSea, one panel for each strategy."""
    return frontiers(studies.deep_sea_runs(study))


def acting_on_deep_sea(study: str) -> Figure:
    """Plot the acting of the runs that `acting.py` extracted."""
    return acting_figure(*studies.acting_tables(study))


def acting_on_alien(study: str) -> Figure:
    """Plot the acting of the Alien runs."""
    found = studies.read_study(study)
    runs = studies.without_shared_settings(runs_by_task(found)["Alien"])
    return acting_figure(runs[runs.has_line], found.acting)


def scores_by_algorithm(study: str) -> Figure:
    """Plot evaluations against frames, with the paper's number of heads."""
    return scores(studies.without_shared_settings(with_paper_heads(studies.atari_evaluations(study))))


def scores_by_heads(study: str) -> Figure:
    """Plot evaluations against frames for each number of heads."""
    return heads(studies.without_shared_settings(studies.atari_evaluations(study)))


def on_minatar(plot: Callable[[pd.DataFrame, Suite], Figure]) -> Callable[[str], Figure]:
    """Return a function of the study that plots a figure of the reports from its runs on MinAtar."""
    return lambda study: plot(studies.without_shared_settings(studies.minatar_evaluations(study)), MINATAR)


def _entropy(evaluations: pd.DataFrame, suite: Suite) -> Figure:
    return diversity(evaluations, "vote_entropy", "vote entropy (nats)", suite)


DEEP_SEA_EVERY_STEP = DocsFigure(
    episodes_by_size,
    "Episodes to solve DeepSea against the size of the grid, with an update every step",
    BY_SIZE_CAPTION,
)
DEEP_SEA_SMALL = DocsFigure(
    episodes_by_size,
    "Episodes to solve DeepSea against the size of the grid, five seeds of six strategies",
    BY_SIZE_CAPTION,
)
CHOICES = DocsFigure(
    episodes_by_variant,
    "Episodes to solve DeepSea under other choices than ours or the paper's, a row each",
    ABLATION_CAPTION,
)
ABLATION = DocsFigure(
    episodes_by_variant,
    "Episodes to solve DeepSea with priors, prioritised replay and votes, a row each",
    ABLATION_CAPTION,
)
FRONTIER = DocsFigure(
    frontier_by_strategy, "Episodes to solve DeepSea up to N = 50, a panel for each strategy", FRONTIERS_CAPTION
)
EXPLORER = DocsFigure(
    frontier_figure,
    "Episodes to solve DeepSea against N: the preset explorer, the paper's Gain and EVOI, and BootDQN",
    f"{FRONTIERS_CAPTION} Dashed: the largest N that is published as solved by BootDQN, without and with priors.",
)
ACTING = DocsFigure(
    acting_on_deep_sea,
    "Gain and EVOI at N = 30 against steps: heads overruled, the EVOI of actions, and the disagreement of heads",
    ACTING_CAPTION,
)
FREEWAY = DocsFigure(
    freeway_figure,
    "Scores on Freeway against frames",
    "Freeway, EVOI, K = 10, one seed: each episode of training, each evaluation by vote, and random play.",
)
ALIEN = DocsFigure(
    scores_by_algorithm,
    "Scores of BootDQN and EVOI on Alien against frames",
    "Alien, K = 10, one seed: evaluations by vote. Random play is the paper's; its maximal scores, after two thousand "
    "times as many frames, are printed at the top.",
)
ALIEN_HEADS = DocsFigure(
    scores_by_heads,
    "Scores of EVOI on Alien against frames, for each number of heads",
    "Alien, EVOI: evaluations by vote for each number of heads, one seed of each. Random play is the paper's.",
)
ALIEN_LONGER = DocsFigure(
    scores_by_algorithm,
    "Scores of BootDQN and EVOI on Alien against frames, in longer runs",
    "Alien, K = 10, one seed, in bf16: evaluations by vote, ten episodes each. Random play is the paper's; its maximal "
    "scores, after hundreds of times as many frames, are printed at the top.",
)
ALIEN_ACTING = DocsFigure(
    acting_on_alien,
    "BootDQN and EVOI on Alien against steps: heads overruled, the EVOI of actions, and the disagreement of heads",
    f"{ACTING_CAPTION} Circles end the lines of runs that were stopped.",
)
_MEAN_AND_INTERVAL = "Moving average over a tenth of the evaluations, mean over seeds, shaded 95 % bootstrap intervals."
MINATAR_SCORES = DocsFigure(
    on_minatar(scores),
    "Scores of four algorithms on five MinAtar games against steps",
    f"MinAtar, K = 10: evaluations by vote. {_MEAN_AND_INTERVAL} Dotted: random play.",
)
MINATAR_ENTROPY = DocsFigure(
    on_minatar(_entropy),
    "Vote entropy of four algorithms on five MinAtar games against steps",
    f"MinAtar, K = 10: the diversity of the votes by their entropy. {_MEAN_AND_INTERVAL}",
)
MINATAR_PROFILES = DocsFigure(
    on_minatar(profiles),
    "Fraction of the runs on MinAtar above each normalised score, for four algorithms",
    "MinAtar, K = 10: runs above each maximal normalised score.",
)
MINATAR_HEADS = DocsFigure(
    on_minatar(heads),
    "Scores of EVOI on Asterix against steps, for each number of heads",
    f"MinAtar's Asterix, EVOI: evaluations by vote for each number of heads. {_MEAN_AND_INTERVAL}",
)
SWING_UP = DocsFigure(
    swing_up_figure,
    "Return of every episode of CartPole swing-up, and its average over a hundred",
    "`cartpole_swingup/0`, BootDQN with a prior of 100: every episode of training, and the average of the last "
    "hundred. Dashed: the return from which bsuite counts an episode as a swing-up.",
)
DOORKEY = DocsFigure(
    doorkey_figure,
    "Evaluation return on DoorKey-5x5 against steps: ten seeds and their mean",
    "`MiniGrid-DoorKey-5x5-v0`, the defaults of `train minigrid`: evaluations by the vote of the heads, ten episodes "
    "each. Dashed: a run whose last four evaluations are above it counts as solved.",
)
