"""The page: numbers computed here, drawn there. Style and script lie beside this file and go into the page."""

import base64
import io
import json
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from bootdqn.common.algorithms import algorithm
from bootdqn.common.files import write_text_atomically
from bootdqn.common.specs import Array
from bootdqn.exploration.strategies import parse_strategy
from bootdqn.inspector.maps import Maps
from bootdqn.inspector.recording import METHODS, Compared, Recording, Step

_HERE = Path(__file__).parent
DIGITS = 5


def write_page(recording: Recording, maps: list[Maps], path: Path) -> Path:
    """Write the page about `recording` (and the maps of DeepSea, if any) and return its path."""
    data = json.dumps(page_data(recording, maps), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    content = (_HERE / "inspector.html").read_text(encoding="utf-8")
    for name, text in (
        ("TITLE", escape(f"{recording.title}: why it chose that action")),
        ("STYLE", (_HERE / "inspector.css").read_text(encoding="utf-8")),
        ("SCRIPT", (_HERE / "inspector.js").read_text(encoding="utf-8")),
        ("DATA", data),
    ):
        content = content.replace(f"%{name}%", text)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, content)
    return path


def page_data(recording: Recording, maps: list[Maps]) -> dict[str, Any]:
    """Return everything that the page shows, ready for JSON."""
    return {
        "title": recording.title,
        "strategy": recording.strategy,
        "bars": _bars(recording.compared),
        "weightsStep": recording.weights_step,
        "methods": METHODS,
        "colours": {
            "q": "#9db0c9",
            "gain": algorithm("gain").colour,
            "evoi": algorithm("evoi:reduce=sum").colour,
            "greedy": algorithm("greedy").colour,
            "ucb": algorithm("ucb").colour,
        },
        "size": maps[0].visits.shape[0] if maps else None,
        "steps": [_step(recording, step) for step in recording.steps],
        "maps": [
            {"step": one.step, "visits": one.visits.tolist(), "evoi": _rounded(one.evoi), "votes": _rounded(one.votes)}
            for one in maps
        ],
    }


def flip_sentence(recording: Recording, step: Step) -> str:
    """Say with the numbers how information, or the draw of an action, changed the choice."""
    found = recording.opinions(step)
    alone = found.choices[0]
    text = (
        f"Head {step.head} alone would do {step.names[alone]} (Q {found.own[alone]:.3g}). It did "
        f"{step.names[step.action]} (Q {found.own[step.action]:.3g})"
    )
    if recording.drawn:
        probability = np.exp(parse_strategy(recording.strategy).scores(step.q, step.head))
        return f"{text}: drawn with probability {probability[step.action]:.3g}, the other has {probability[alone]:.3g}."
    bonuses = {"gain": ("gain", found.gain), "evoi": ("EVOI", found.evoi)}
    if (name := parse_strategy(recording.strategy).name) in bonuses:
        word, bonus = bonuses[name]
        return f"{text}: {word} adds {bonus[step.action]:.3g} to it, and {bonus[alone]:.3g} to the other."
    return text + "."


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
        "choices": found.choices,
        "action": step.action,
        "reward": step.reward,
        "value": round(float(found.mean.max()), DIGITS),
        "disagreement": round(found.disagreement, DIGITS),
        "flip": flip_sentence(recording, step) if recording.flip(step) else None,
        "names": step.names,
        "cell": step.cell,
        "frame": None if step.frame is None else _image(step.frame),
    }


def _rounded(values: Array) -> Any:
    return np.round(np.asarray(values, float), DIGITS).tolist()


def _image(frame: Array) -> str:
    """Return a frame as a data address; games have few colours, so a palette loses next to nothing."""
    buffer = io.BytesIO()
    Image.fromarray(frame).quantize(64).save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
