"""The figures of the docs, each with its alternative text and caption."""

from collections.abc import Callable
from statistics import mean
from typing import NamedTuple

from matplotlib.figure import Figure

from bootdqn.report.acting import courses_by_task
from bootdqn.report.acting_figures import ACTING_CAPTION, acting
from bootdqn.report.atari import with_paper_heads
from bootdqn.report.atari_figures import Episode, heads, learning, scores
from bootdqn.report.deep_sea_figures import BY_SIZE_CAPTION, episodes_to_solve
from bootdqn.report.report import said_once
from bootdqn.report.variant_figures import ABLATION_CAPTION, FRONTIERS_CAPTION, ablation, frontiers
from bootdqn.runs.directory import RunDirectory
from reproduction import studies


class DocsFigure(NamedTuple):
    """A figure on a page of the docs."""

    plot: Callable[[str], Figure]
    """Plots the figure from the runs of a study."""
    alt: str
    caption: str


def episodes_by_size(study: str) -> Figure:
    """Plot episodes to solve DeepSea against the size of the grid."""
    return episodes_to_solve(studies.deep_sea_results(study))[0]


def episodes_by_variant(study: str) -> Figure:
    """Plot episodes to solve DeepSea, one row for each variant."""
    return ablation(studies.deep_sea_results(study))


def frontier_by_strategy(study: str) -> Figure:
    """Plot episodes to solve DeepSea, one panel for each strategy."""
    return frontiers(studies.deep_sea_results(study))


def acting_on_deep_sea(study: str) -> Figure:
    """Plot the acting of the runs that `acting.py` extracted."""
    return acting(studies.acting_courses(study))


def acting_on_alien(study: str) -> Figure:
    """Plot the acting of the Alien runs."""
    return acting(said_once(courses_by_task(studies.read_study(study))["Alien"])[0])


def freeway(study: str) -> Figure:
    """Plot every episode and evaluation of the Freeway run with ten heads."""
    played = next(run for run in studies.atari_runs(study) if run.name == "Freeway")
    run = RunDirectory(studies.RESULTS / study / played.name)
    config = run.read_config()
    skip = config["frame_skip"]
    episodes = [Episode(skip * episode["step"], episode["return"]) for episode in run.read_metrics("episode")]
    return learning(played, episodes, skip * config["learning_starts"], mean(studies.random_play_returns("Freeway")))


def scores_by_algorithm(study: str) -> Figure:
    """Plot evaluations against frames, with the paper's number of heads."""
    return scores(said_once(with_paper_heads(studies.atari_runs(study)))[0])


def scores_by_heads(study: str) -> Figure:
    """Plot evaluations against frames for each number of heads."""
    return heads(said_once(studies.atari_runs(study))[0])


DEEP_SEA = DocsFigure(
    episodes_by_size, "Episodes to solve DeepSea against the size of the grid, the paper's study", BY_SIZE_CAPTION
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
ACTING = DocsFigure(
    acting_on_deep_sea,
    "Gain and EVOI at N = 30 against steps: heads overruled, the EVOI of actions, and the disagreement of heads",
    ACTING_CAPTION,
)
FREEWAY = DocsFigure(
    freeway,
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
