"""The settings of bsuite's exploration experiments against bsuite, where it is installed, and against its paper."""

import pytest

from bootdqn.config.bsuite import BSUITE_IDS, EXPERIMENTS, BsuiteConfig
from bootdqn.config.settings import from_flat, to_flat
from bootdqn.config.train import resolve


def test_the_settings_are_those_of_bsuites_tag():
    sweep = pytest.importorskip("bsuite.sweep")
    assert set(BSUITE_IDS) == set(sweep.TAGS["exploration"])
    assert len(BSUITE_IDS) == 62
    for bsuite_id in BSUITE_IDS:
        config = BsuiteConfig(bsuite_id)
        assert dict(config.settings) == sweep.SETTINGS[bsuite_id]
        assert config.default_max_episodes == sweep.EPISODES[bsuite_id]


def test_the_experiments_have_21_21_and_20_settings():
    assert {name: len(found.settings) for name, found in EXPERIMENTS.items()} == {
        "deep_sea": 21,
        "deep_sea_stochastic": 21,
        "cartpole_swingup": 20,
    }
    assert BsuiteConfig("deep_sea/7").settings == {"size": 24, "mapping_seed": 42}
    assert BsuiteConfig("cartpole_swingup/15").settings == {"height_threshold": 0.75, "x_reward_threshold": 0.25}


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("deepsea/7", "did you mean 'deep_sea/7'"),
        ("deep_sea/21", "deep_sea/0 to /20"),
        ("deep_sea", "did you mean 'deep_sea/"),
        ("deep_sea/07", "did you mean 'deep_sea/"),
        ("catch/0", "cartpole_swingup/0 to /19; got 'catch/0'"),
        ("", "got ''"),
    ],
)
def test_an_id_that_does_not_exist_gets_the_closest_or_the_list(given, hint):
    with pytest.raises(ValueError, match=r"^--id must be one of deep_sea/0 to /20, .*") as error:
        BsuiteConfig(given)
    assert hint in str(error.value)


def test_the_budget_is_bsuites_unless_it_is_given():
    def resolved(**settings):
        return to_flat(resolve(from_flat({"environment": "bsuite", **settings})))["max_episodes"]

    assert resolved(bsuite_id="deep_sea_stochastic/20") == 10_000
    assert resolved(bsuite_id="cartpole_swingup/3") == 1000
    assert resolved(bsuite_id="cartpole_swingup/3", max_episodes=7) == 7


def test_a_run_needs_an_id():
    with pytest.raises(ValueError, match="bsuite needs bsuite_id, as in bsuite_id = 'deep_sea/0'"):
        from_flat({"environment": "bsuite"})
