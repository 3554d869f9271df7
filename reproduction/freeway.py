"""The figure of the Freeway run with ten heads: every episode, every evaluation, random play, and the first update."""

from statistics import mean

import matplotlib as mpl
import pandas as pd
from matplotlib.figure import Figure

from bootdqn.common.text import figure_label
from bootdqn.reports import paper
from bootdqn.reports.style import RC_PARAMS, variant_styles
from bootdqn.reports.suites import ATARI
from reproduction import studies


def freeway_figure(study: str) -> Figure:
    """Plot every episode and evaluation of the Freeway run with ten heads."""
    evaluations, episodes = studies.atari_evaluations(study), studies.training_episodes(study, "Freeway")
    episodes = episodes.assign(frames=episodes.step * episodes.frame_skip)
    first_update = (episodes.learning_starts * episodes.frame_skip).iloc[0]
    random = mean(studies.random_play_returns("Freeway"))
    return training_figure(evaluations[evaluations.run == "Freeway"], episodes, first_update, random)


def training_figure(evaluations: pd.DataFrame, episodes: pd.DataFrame, first_update: int, random: float) -> Figure:
    """Plot one run without averages: every episode it trained on, every evaluation by vote, and the first update.

    Args:
        evaluations: Those of the run.
        episodes: Its training episodes: `frames` of the run so far, and `return`.
        first_update: Frames before it.
        random: What random play of the game scores.
    """
    with mpl.rc_context(RC_PARAMS):
        figure = Figure(figsize=(7.5, 3.8), layout="constrained")
        axes = figure.subplots()
        run = evaluations.iloc[0]
        colour = variant_styles([run.variant])[run.variant].colour
        axes.scatter(episodes.frames / 1e6, episodes["return"], s=16, color="#888888",
                     label="training episode of one head")  # fmt: skip
        axes.plot(evaluations.frames / 1e6, evaluations.score, color=colour, marker="o", linewidth=1.8,
                  label="evaluation by vote")  # fmt: skip
        axes.axhline(random, color="black", linewidth=0.8, linestyle=":", label="random play")
        axes.axvline(first_update / 1e6, color="black", linewidth=0.8, linestyle="--", label="first update")
        axes.set_title(figure_label(f"{paper.title_of(run.game)}, K = {run.num_heads}, seed {run.seed}"))
        axes.set_xlim(left=0)
        axes.set_xlabel(ATARI.axis)
        axes.set_ylabel("score")
        axes.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return figure
