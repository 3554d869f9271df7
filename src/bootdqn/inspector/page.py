"""The inspector's page: data computed here, and shown by the script beside this file."""

import base64
import io
import json
import math
import re
from collections.abc import Callable
from contextlib import closing
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from bootdqn.common.errors import UsageError, check_file_writable
from bootdqn.common.files import write_text_atomically
from bootdqn.common.specs import Array
from bootdqn.config.variants import algorithm
from bootdqn.exploration.strategies import STRATEGIES, Boltzmann, Evoi, Gain, Strategy, Vote
from bootdqn.inspector.figure import bonuses_are_invisible, plot_step, save_figure
from bootdqn.inspector.maps import Maps, deep_sea_maps
from bootdqn.inspector.recording import ComparedStrategies, Recorder, Recording, Step
from bootdqn.runs.directory import find_weights

DIGITS = 5
_HERE = Path(__file__).parent


def inspect_run(
    path: Path,
    out: Path,
    *,
    weights: str | Path | int | None = None,
    episodes: int = 1,
    max_steps: int = 1000,
    strategy: str | None = None,
    head: int | None = None,
    seed: int = 0,
    figure: Path | None = None,
    step: int | None = None,
    progress: Callable[[str], None] = lambda _text: None,
) -> str:
    """Record episodes of the run in directory `path` and write the page `out`, or instead the figure of one step.

    Args:
        path: The run directory.
        out: The page to write.
        weights: Step of a snapshot, or a file of weights (None: the last saved).
        episodes: Number of episodes.
        max_steps: Limit on the steps of all episodes together.
        strategy: Strategy to act by (None: as in training).
        head: Active head (None: sampled for each episode).
        seed: Seed of the environment, the heads and sampled actions.
        figure: File of a figure to write instead of the page.
        step: Step of the figure (None: the first in which the strategy chose another action than the head alone).
        progress: Called with a line of text after every step.

    Returns:
        A message that names the file to open.

    Raises:
        UsageError: The run, the weights, the strategy, the head or the step do not exist, or a file cannot be written.
        TrainingError: The environment or the strategy raised an exception.
    """
    check_file_writable(*((out, "--out") if figure is None else (figure, "--figure")))
    try:
        recorder = Recorder(path, weights, strategy)
    except ValueError as error:
        raise UsageError(f"--strategy: {error}") from error
    with closing(recorder):
        recording = recorder.record(episodes=episodes, max_steps=max_steps, seed=seed, head=head, progress=progress)
        maps = []
        if recorder.size is not None and figure is None:
            maps = deep_sea_maps(recorder, path, seed, find_weights(path, weights))
    without = f" What the agent saw is not shown: {recorder.render_error}." if recorder.render_error else ""
    if figure is not None:
        flips = (number for number, one in enumerate(recording.steps) if recording.flip(one))
        shown = next(flips, 0) if step is None else step
        if not 0 <= shown < len(recording.steps):
            raise UsageError(f"--step must be in 0..{len(recording.steps) - 1}, got {step}")
        save_figure(plot_step(recording, shown), figure)
        return f"Open {figure}, which is of step {shown}.{without}"
    page = write_page(recording, maps, out)
    return f"{summary(recording)} Open {page} in a browser.{without}"


def summary(recording: Recording) -> str:
    """Return a sentence with the number of steps, and how many of them the strategy changed."""
    flips = sum(recording.flip(step) for step in recording.steps)
    reference = "the active head alone" if recording.follows_head else "the ensemble's mean"
    return (
        f"{len(recording.steps)} steps, {flips} of them changed by {_cause(recording.strategy)} "
        f"from what {reference} would do."
    )


def flip_sentence(recording: Recording, step: Step) -> str:
    """Return two sentences that explain, with the numbers, why the strategy did not follow the reference."""
    found, reference = recording.analysis(step), recording.reference(step)
    done, alone = step.action, recording.reference_action(step)
    who, it = (f"Head {step.head} alone", "It") if recording.follows_head else ("The ensemble's mean", "The strategy")
    value, value_of_other = _distinct(reference[done], reference[alone])
    text = f"{who} would do {step.names[alone]} (Q {value_of_other}). {it} did {step.names[done]} (Q {value})"
    bonuses = {Gain: ("gain", found.gain), Evoi: ("EVOI", found.evoi)}
    if type(recording.strategy) in bonuses:
        word, bonus = bonuses[type(recording.strategy)]
        mine, other = _distinct(bonus[done], bonus[alone])
        return f"{text}: {word} adds {mine} to it, and {other} to the other."
    mine, other = _distinct(*recording.decision_values(step)[[done, alone]])
    if recording.scores_are_log_probabilities:
        return f"{text}: sampled with probability {mine}, the other has {other}."
    return f"{text}: its score is {mine}, the other's {other}."


def _distinct(one: float, other: float) -> tuple[str, str]:
    """Return two numbers with three digits, or with as many, up to seven, as make them differ."""
    texts = [(f"{one:.3g}", f"{other:.3g}"), *((f"{one:#.{k}g}", f"{other:#.{k}g}") for k in range(4, 8))]
    return next((pair for pair in texts if pair[0] != pair[1]), texts[0])


def _cause(strategy: Strategy) -> str:
    """Return the reason why an action differs from that of the reference."""
    causes: dict[type[Strategy], str] = {Boltzmann: "sampling the action", Vote: "the vote"}
    return causes.get(
        type(strategy), "information" if type(strategy) in STRATEGIES else f"the strategy {strategy.name}"
    )


def write_page(recording: Recording, maps: list[Maps], path: Path) -> Path:
    """Write the page about `recording` (and the maps of DeepSea, if any) and return its path."""
    data = json.dumps(page_data(recording, maps), allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    template = (_HERE / "inspector.html").read_text(encoding="utf-8")
    parts = {
        "TITLE": escape(f"{recording.title}: why it chose that action"),
        "STYLE": (_HERE / "inspector.css").read_text(encoding="utf-8"),
        "SCRIPT": "".join((_HERE / name).read_text(encoding="utf-8") for name in ("charts.js", "inspector.js")),
        "DATA": data,
    }
    names = "|".join(parts)
    content = re.sub(f"%({names})%", lambda name: parts[name[1]], template)  # at once: a title may hold %DATA%
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, content)
    return path


def page_data(recording: Recording, maps: list[Maps]) -> dict[str, Any]:
    """Return the data of the page, ready for JSON."""
    return {
        "title": recording.title,
        "strategy": recording.strategy_text,
        "followsHead": recording.follows_head,
        "bars": _bonus_label(recording.compared),
        "relative": bonuses_are_invisible(recording),
        "weightsStep": recording.weights_step,
        "methods": [{"name": name, "colour": colour} for name, colour in recording.methods.items()],
        "scoreTitle": None if recording.scores_in_bars else recording.score_title,
        "scoresFromZero": recording.scores_start_at_zero,
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


def _bonus_label(compared: ComparedStrategies) -> str:
    """Return the label of the bonuses on top of the Q-values."""
    gain, evoi = compared.gain, compared.evoi
    return f"gain{_times(gain.scale)} and EVOI by {evoi.reduce} over heads{_times(evoi.scale)}"


def _times(scale: float) -> str:
    return "" if scale == 1 else f" times {scale:g}"


def _step(recording: Recording, step: Step) -> dict[str, Any]:
    found = recording.analysis(step)
    return {
        "episode": step.episode,
        "head": step.head,
        "q": _rounded(step.q),
        "gain": _rounded(found.gain),
        "evoi": _rounded(found.evoi),
        "mean": _rounded(found.mean),
        "choices": recording.choices(step),
        "scores": [_json_number(score) for score in recording.decision_values(step)],
        "action": step.action,
        "reward": step.reward,
        "value": round(float(found.mean.max()), DIGITS),
        "vote_entropy": round(found.vote_entropy, DIGITS),
        "flip": flip_sentence(recording, step) if recording.flip(step) else None,
        "alone": recording.reference_action(step),
        "names": step.names,
        "cell": step.cell,
        "frame": None if step.frame is None else _image(step.frame),
    }


def _json_number(value: float) -> float | str:
    """Return a number with six digits; one that JSON cannot express as the text that JavaScript's Number reads."""
    if math.isfinite(value):
        return float(f"{value:.6g}")
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _rounded(values: Array) -> Any:
    return np.round(np.asarray(values, float), DIGITS).tolist()


def _image(frame: Array) -> str:
    """Return a frame as a data URL; games have few colours, so a palette loses next to nothing."""
    buffer = io.BytesIO()
    Image.fromarray(frame).quantize(64).save(buffer, format="PNG", optimize=True)
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()
