"""What the inspector says of a recording, so that the page, the figure and the command line say the same."""

import numpy as np

from bootdqn.exploration.strategies import STRATEGIES, Boltzmann, Evoi, Gain, Strategy, Vote
from bootdqn.inspector.recording import Recording, Step


def summary(recording: Recording) -> str:
    """Say how many steps there are, and how many of them flipped, by what and from what."""
    flips = sum(recording.flip(step) for step in recording.steps)
    reference = "the active head alone" if recording.follows_head else "the ensemble's mean"
    return (
        f"{len(recording.steps)} steps, {flips} of them changed by {_cause(recording.strategy)} "
        f"from what {reference} would do."
    )


def flip_sentence(recording: Recording, step: Step) -> str:
    """Say with the numbers how the strategy came to do something else than the reference alone would have done."""
    found, reference = recording.opinions(step), recording.reference(step)
    done, alone = step.action, int(np.argmax(reference))
    who, it = (f"Head {step.head} alone", "It") if recording.follows_head else ("The ensemble's mean", "The strategy")
    text = (
        f"{who} would do {step.names[alone]} (Q {reference[alone]:.3g}). "
        f"{it} did {step.names[done]} (Q {reference[done]:.3g})"
    )
    bonuses = {Gain: ("gain", found.gain), Evoi: ("EVOI", found.evoi)}
    if type(recording.strategy) in bonuses:
        word, bonus = bonuses[type(recording.strategy)]
        return f"{text}: {word} adds {bonus[done]:.3g} to it, and {bonus[alone]:.3g} to the other."
    mine, other = recording.deciding(step)[[done, alone]]
    if recording.scores_are_chances:
        return f"{text}: drawn with probability {mine:.3g}, the other has {other:.3g}."
    return f"{text}: its score is {mine:.3g}, the other's {other:.3g}."


def score_title(recording: Recording) -> str:
    """Say what the numbers by which the strategy chose are, and how it chose by them."""
    if recording.scores_are_chances:
        return f"probability by {recording.strategy_text}: an action is drawn"
    rule = "the action with the highest is done"
    if type(recording.strategy) is Vote:
        rule = "the highest is done, a tie goes to the higher mean"
    elif type(recording.strategy).select is not Strategy.select:
        rule = "its own rule chooses by them"
    return f"score of {recording.strategy_text}: {rule}"


def _cause(strategy: Strategy) -> str:
    """Say what makes an action another one than the reference would choose."""
    causes: dict[type[Strategy], str] = {Boltzmann: "the draw of an action", Vote: "the vote"}
    return causes.get(
        type(strategy), "information" if type(strategy) in STRATEGIES else f"the strategy {strategy.name}"
    )
