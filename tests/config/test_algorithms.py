"""The names and colours of the algorithms."""

import re

from bootdqn.config.variants import algorithm
from bootdqn.exploration.strategies import STRATEGIES


def test_every_strategy_has_a_name_and_a_colour_of_its_own():
    shown = [algorithm(strategy.name) for strategy in STRATEGIES]
    assert len({one.label for one in shown}) == len({one.colour for one in shown}) == len(STRATEGIES)
    assert all(re.fullmatch("#[0-9A-F]{6}", one.colour) for one in shown)
    assert all("DQN" in one.label for one in shown), "the label is the paper's kind of name, not the flag"
    assert algorithm("boltzmann").label == "BootDQN-Boltzmann"
