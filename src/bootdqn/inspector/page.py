"""The page: numbers computed here, drawn there. Style and script lie beside this file and go into the page."""

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

from bootdqn.common.algorithms import algorithm
from bootdqn.common.files import write_text_atomically
from bootdqn.common.specs import Array
from bootdqn.inspector.maps import Maps
from bootdqn.inspector.recording import Compared, Recording, Step
from bootdqn.inspector.words import flip_sentence, score_title

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
