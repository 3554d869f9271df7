"""Figures of many variants: every seed is there, every row has its name, what was not solved shows."""

import pytest
from matplotlib.collections import PathCollection

from bootdqn.config.variants import Variant, label
from bootdqn.reports import ablation_figures
from bootdqn.reports.ablation_figures import ABLATION_CAPTION
from bootdqn.reports.style import to_png
from reference.tables import DeepSeaRun, deep_sea_table

SCALES = [Variant("gain" if scale == 1 else f"gain:scale={scale}.0") for scale in (1, 2, 5, 10, 20)]
PRIORS = [Variant(strategy, (("prior_scale", 3.0),)) for strategy in ("greedy", "gain", "evoi:reduce=sum")]
MANY = [*SCALES, *PRIORS, Variant("greedy"), Variant("evoi:reduce=sum")]


def results(variants, sizes, seeds=3, cap=1000, solved_up_to=20):
    return [
        DeepSeaRun(variant, size, seed, cap, *([10 * size + seed if size <= solved_up_to else None] * 2))
        for variant in variants
        for size in sizes
        for seed in range(seeds)
    ]


def ablation(runs):
    return ablation_figures.ablation(deep_sea_table(runs))


def ablation_sizes(runs):
    return ablation_figures.ablation_sizes(deep_sea_table(runs))


def frontiers(runs):
    return ablation_figures.frontiers(deep_sea_table(runs))


def marks_of(axes):
    dots = [collection for collection in axes.collections if isinstance(collection, PathCollection)]
    return [tuple(point) for collection in dots for point in collection.get_offsets()]


def test_the_figure_of_ablations_has_a_row_for_each_variant_and_a_dot_for_each_seed():
    runs = results(MANY, (10, 30), seeds=5)
    figure = ablation(runs)
    left, right = figure.axes
    rows = [text.get_text() for text in left.get_yticklabels()]
    assert sorted(rows) == sorted(map(label, MANY))
    assert rows[:2] == ["BootDQN", "BootDQN + prior 3"]
    assert len(marks_of(left)) == len(marks_of(right)) == 5 * len(MANY)
    assert {x for x, _ in marks_of(right)} == {1000.0}, "unsolved runs stand at the cap"
    assert [text.get_text() for text in right.texts] == ["≥ 1,000 (0/5)"] * len(MANY)
    assert [text.get_text() for text in left.texts] == ["102 (5/5)"] * len(MANY)
    assert to_png(figure).startswith(b"\x89PNG")


def test_the_interval_of_a_lower_bound_is_plotted_up_to_the_mean_and_points_beyond():
    whole = [DeepSeaRun(PRIORS[0], 10, seed, 1000, 100 * (seed + 1), 100 * (seed + 1)) for seed in range(3)]
    bound = [run._replace(variant=PRIORS[1]) for run in whole[:2]] + [DeepSeaRun(PRIORS[1], 10, 2, 1000, None, None)]
    unsolved = [DeepSeaRun(PRIORS[2], 10, seed, 1000, None, None) for seed in range(3)]
    (axes,) = ablation(whole + bound + unsolved).axes
    intervals = [list(line.get_xdata()) for line in axes.get_lines() if line.get_linewidth() == 5]
    assert intervals == [[100, 300], [100, pytest.approx((100 + 200 + 1000) / 3)], [1000, 1000]]
    arrows = [line.get_ydata()[0] for line in axes.get_lines() if line.get_marker() == ">"]
    assert arrows == [1]
    assert "open beyond" in ABLATION_CAPTION


def test_ablations_are_plotted_where_there_are_variants_and_few_sizes():
    assert ablation_sizes(results(PRIORS, (10, 20))) == [10, 20]
    assert ablation_sizes(results([Variant("gain"), Variant("ids")], (10, 20))) == []
    assert ablation_sizes(results(PRIORS, range(10, 20))) == []
    assert ablation_sizes(results(PRIORS, (10, 20)) + results([Variant("gain")], (10, 12, 14, 16))) == [10, 20]
    plain = [Variant(name) for name in ("greedy", "ucb", "gain", "ids")]
    assert ablation_sizes(results(plain, range(5, 35, 5)) + results(PRIORS[:1], (30,))) == [30]


def test_many_frontiers_have_a_panel_for_each_strategy_with_the_largest_size_solved():
    figure = frontiers(results(MANY, range(10, 32, 2)))
    panels = {axes.get_title(): axes for axes in figure.axes}
    assert list(panels) == ["BootDQN", "BootDQN-Gain", "BootDQN-EVOI"]
    named = [text.get_text() for axes in figure.axes for text in axes.get_legend().get_texts()]
    assert sorted(named) == sorted(f"{label(variant)}: to N = 20" for variant in MANY)


def test_unsolved_sizes_are_marked_above_the_cap_and_the_furthest_solved_one_is_circled():
    (axes,) = frontiers(results([Variant("gain")], (18, 20, 22, 24))).axes
    marks = marks_of(axes)
    assert [x for x, y in marks if y > 1000] == [22, 24]
    seeds = [(size, 10 * size + seed) for size in (18, 20) for seed in range(3)]
    assert [(x, y) for x, y in marks if y <= 1000] == [*seeds, (20, 201)]


def test_every_seed_that_solved_it_is_within_the_picture():
    lucky = [DeepSeaRun(Variant("gain"), 10, seed, 1000, value, value) for seed, value in enumerate((3, 500, 900))]
    (axes,) = frontiers(lucky).axes
    low, high = axes.get_ylim()
    assert {(10.0, 3.0), (10.0, 500.0), (10.0, 900.0)} <= set(marks_of(axes))
    assert low < 3 < 900 < high


def test_the_largest_size_that_was_run_is_not_labelled_as_the_limit():
    (axes,) = frontiers(results([Variant("gain")], (10, 20)) + results([Variant("greedy")], (10, 20, 30))).axes
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels == ["BootDQN: to N = 20", "BootDQN-Gain: to N = 20, none larger was run"]


def test_a_variant_that_solves_nothing_has_no_largest_solved_size():
    (axes,) = frontiers(results([Variant("gain")], (30, 40))).axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["BootDQN-Gain: none of N = 30 to 40"]


def test_every_panel_shows_all_sizes_and_means_whatever_is_plotted_first():
    late = results([Variant("greedy")], (30,), solved_up_to=0)
    early = results([*SCALES, *PRIORS], (10, 30), solved_up_to=30)
    for axes in frontiers(late + early).axes:
        (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
        assert left < 10 < 30 < right
        assert low < 100 < 1000 < high
