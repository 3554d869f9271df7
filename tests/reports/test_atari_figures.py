"""The lines in the figures about Atari are what their axes are called."""

import numpy as np
import pytest

from bootdqn.reports import atari_figures
from reference.tables import AtariRun, evaluations_table


@pytest.fixture
def three_seeds():
    """Runs that score 0 and 0, 10 and 20, 50 and 100, with entropies of 0.1 and 0.5, 0.2 and 0.5, 0.6 and 0.5."""
    return evaluations_table(
        AtariRun(seed=seed, scores=(10.0 * times, 20.0 * times), diversity={"vote_entropy": (0.1 * (1 + times), 0.5)})
        for seed, times in enumerate((0, 1, 5))
    )


def with_several_heads(game, scores):
    return evaluations_table(AtariRun(game, scores=scores, num_heads=heads) for heads in (2, 10))


def test_the_curve_of_the_scores_is_their_mean_over_seeds(three_seeds):
    (axes,) = atari_figures.scores(three_seeds).axes
    assert axes.get_lines()[0].get_xydata().tolist() == [[100.0, 20.0], [200.0, 40.0]]


@pytest.mark.parametrize("lowest", [900.0, -3.0])
def test_scores_begin_at_zero_unless_some_are_below(lowest):
    runs = with_several_heads("Alien", (lowest, 1000.0))
    for figure in (atari_figures.scores(runs[runs.num_heads == 10]), atari_figures.heads(runs)):
        (axes,) = figure.axes
        assert axes.get_ylim()[0] == 0 if lowest > 0 else axes.get_ylim()[0] < lowest


def test_scores_by_the_number_of_heads_stand_beside_random_play():
    (axes,) = atari_figures.heads(with_several_heads("Hero", (2000.0, 3000.0))).axes
    assert [text.get_text() for text in axes.texts] == ["random"]
    assert set(axes.get_lines()[-1].get_ydata()) == {1027.0}


def test_the_curve_of_a_measure_is_the_mean_of_that_measure(three_seeds):
    (axes,) = atari_figures.diversity(three_seeds, "vote_entropy", "vote entropy (nats)").axes
    assert axes.get_lines()[0].get_ydata() == pytest.approx([0.3, 0.5])


def test_a_profile_falls_from_all_runs_to_none():
    """On Venture, where random play scores 0 and people 1,187.5."""
    halfway, human = (AtariRun("Venture", seed=seed, scores=(score,)) for seed, score in enumerate((593.75, 1187.5)))
    (axes,) = atari_figures.profiles(evaluations_table([halfway, human])).axes
    (line,) = axes.get_lines()
    expected = np.select([line.get_xdata() < 50, line.get_xdata() < 100], [1.0, 0.5], 0.0)
    assert line.get_ydata().tolist() == expected.tolist()
    assert set(expected) == {1.0, 0.5, 0.0}
