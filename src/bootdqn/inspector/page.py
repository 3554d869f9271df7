"""The inspector's page: numbers computed here, plotted by the script beside this file."""

import base64
import io
import json
import math
import re
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from bootdqn.common.files import write_text_atomically
from bootdqn.common.specs import Array
from bootdqn.config.variants import algorithm
from bootdqn.exploration.strategies import STRATEGIES, Boltzmann, Evoi, Gain, Strategy, Vote
from bootdqn.inspector.maps import Maps
from bootdqn.inspector.recording import Compared, Recording, Step


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


_HERE = Path(__file__).parent
DIGITS = 5


def write_page(recording: Recording, maps: list[Maps], path: Path) -> Path:
    """Write the page about `recording` (and the maps of DeepSea, if any) and return its path."""
    data = json.dumps(page_data(recording, maps), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    template = (_HERE / "inspector.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": escape(f"{recording.title}: why it chose that action"),
        "STYLE": (_HERE / "inspector.css").read_text(encoding="utf-8"),
        "SCRIPT": (_HERE / "inspector.js").read_text(encoding="utf-8"),
        "DATA": data,
    }
    content = re.sub(
        f"%({'|'.join(parts)})%", lambda name: parts[name[1]], template
    )  # at once: a title may hold %DATA%
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, content)
    return path


def page_data(recording: Recording, maps: list[Maps]) -> dict[str, Any]:
    """Return everything that the page shows, ready for JSON."""
    return {
        "title": recording.title,
        "strategy": recording.strategy_text,
        "followsHead": recording.follows_head,
        "bars": _bars(recording.compared),
        "weightsStep": recording.weights_step,
        "methods": [{"name": name, "colour": colour} for name, colour in recording.methods.items()],
        "scoreTitle": None if recording.scores_are_in_the_bars else score_title(recording),
        "scoresFromZero": recording.scores_begin_at_zero,
        "colours": {
            "q": "#9db0c9",
            "gain": algorithm("gain").colour,
            "evoi": algorithm("evoi:reduce=sum").colour,
            "greedy": algorithm("greedy").colour,
            "scores": algorithm(recording.strategy_text).colour,
        },
        "size": maps[0].visits.shape[0] if maps else None,
        "steps": [_step(recording, step) for step in recording.steps],
        "maps": [
            {"step": one.step, "visits": one.visits.tolist(), "evoi": _rounded(one.evoi), "votes": _rounded(one.votes)}
            for one in maps
        ],
    }


def _bars(compared: Compared) -> str:
    """Say what is put on top of the Q-values."""
    gain, evoi = compared.gain, compared.evoi
    return f"gain{_times(gain.scale)} and EVOI by {evoi.reduce} over heads{_times(evoi.scale)}"


def _times(scale: float) -> str:
    return "" if scale == 1 else f" times {scale:g}"


def _step(recording: Recording, step: Step) -> dict[str, Any]:
    found = recording.opinions(step)
    return {
        "episode": step.episode,
        "head": step.head,
        "q": _rounded(step.q),
        "gain": _rounded(found.gain),
        "evoi": _rounded(found.evoi),
        "mean": _rounded(found.mean),
        "choices": recording.choices(step),
        "scores": [_any_number(score) for score in recording.deciding(step)],
        "action": step.action,
        "reward": step.reward,
        "value": round(float(found.mean.max()), DIGITS),
        "vote_entropy": round(found.vote_entropy, DIGITS),
        "flip": flip_sentence(recording, step) if recording.flip(step) else None,
        "names": step.names,
        "cell": step.cell,
        "frame": None if step.frame is None else _image(step.frame),
    }


def _any_number(value: float) -> float | str:
    """Return six digits of a number of any size; one that JSON does not know as the word that JavaScript reads."""
    if math.isfinite(value):
        return float(f"{value:.6g}")
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _rounded(values: Array) -> Any:
    return np.round(np.asarray(values, float), DIGITS).tolist()


def _image(frame: Array) -> str:
    """Return a frame as a data address; games have few colours, so a palette loses next to nothing."""
    buffer = io.BytesIO()
    Image.fromarray(frame).quantize(64).save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
