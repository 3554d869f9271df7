"""The style of variants in figures: each has one of its own, whatever the others are."""

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from bootdqn.config.variants import Variant, algorithm
from bootdqn.reports.style import RC_PARAMS, to_svg, variant_styles

CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "prior_scale": st.sampled_from([1.0, 3.0]),
        "replay": st.just("prioritized"),
        "n_step": st.sampled_from([3, 5]),
        "target_rate": st.sampled_from([0.01, 0.005]),
        "double_q": st.just(False),
        "epsilon": st.sampled_from([0.05, 0.1]),
        "epsilon_end": st.sampled_from([0.01, 0.02]),
        "epsilon_steps": st.sampled_from([1000, 20_000]),
        "info_bonus": st.sampled_from([0.1, 1.0]),
        "info_temperature": st.just(2.0),
        "mask_probability": st.sampled_from([0.1, 1.0]),
        "num_heads": st.sampled_from([1, 5]),
        "update_every": st.sampled_from([1, 2]),
        "mapping_seed": st.sampled_from([42, 43]),
        "hidden_sizes": st.sampled_from([(50,), (64, 64)]),
        "learning_rate": st.just(1e-4),
        "deterministic": st.just(False),
    },
)
STRATEGIES = st.sampled_from(
    ["greedy", "gain", "gain:scale=2.0", "evoi", "evoi:reduce=sum", "evoi:reduce=sum,scale=2.0", "vote:rule=borda"]
)
VARIANTS = st.builds(lambda strategy, changes: Variant(strategy, tuple(sorted(changes.items()))), STRATEGIES, CHANGES)


@given(st.sets(VARIANTS, min_size=2, max_size=8))
def test_different_variants_have_different_labels_and_variant_styles(variants):
    shown = variant_styles(variants)
    assert set(shown) == variants
    assert len({style.label for style in shown.values()}) == len(variants)
    if len(variants) <= 7:
        assert len({(style.colour, str(style.line), style.marker) for style in shown.values()}) == len(variants)


@given(st.sets(VARIANTS, min_size=1, max_size=8), st.randoms())
def test_the_order_does_not_depend_on_the_order_of_the_runs(variants, random):
    shuffled = random.sample(sorted(variants, key=str), len(variants))
    assert list(variant_styles(shuffled).items()) == list(variant_styles(variants).items())


@pytest.mark.parametrize("strategy", ["greedy", "ucb", "gain", "evoi", "evoi:reduce=sum", "ids", "vote"])
def test_a_plain_strategy_keeps_its_colour_and_its_line_among_its_variants(strategy):
    other = [Variant(strategy, (("prior_scale", scale),)) for scale in (1.0, 3.0, 10.0)]
    shown = variant_styles([*other, Variant(strategy)])
    plain = shown[Variant(strategy)]
    assert (plain.label, plain.colour, plain.line) == (algorithm(strategy).label, algorithm(strategy).colour, "-")
    assert next(iter(shown)) == Variant(strategy)
    assert [style.label for style in shown.values()][1:] == [f"{plain.label} + prior {scale}" for scale in (1, 3, 10)]


def test_figures_do_not_depend_on_the_style_of_the_user():
    def image():
        with mpl.rc_context(RC_PARAMS):
            figure = Figure(figsize=(2, 2))
            figure.subplots().plot([1, 2])
        return to_svg(figure)

    plain = image()
    with mpl.rc_context({"axes.edgecolor": "#84a6ca", "xtick.color": "#84a6ca", "font.size": 30}):
        assert image() == plain
