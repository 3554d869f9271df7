"""From a run folder to the page, or to one figure."""

from collections.abc import Callable
from pathlib import Path

from bootdqn.common.errors import UsageError, check_writable
from bootdqn.config.envs import DeepSeaConfig
from bootdqn.inspector.figure import draw_step, save
from bootdqn.inspector.maps import deep_sea_maps
from bootdqn.inspector.page import summary, write_page
from bootdqn.inspector.recording import Player
from bootdqn.runs.directory import find_weights


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
    show: Callable[[str], None] = lambda _words: None,
) -> str:
    """Play the run in folder `path`, write the page `out`, or the figure of one step, and say what to open.

    Both begin with the first step in which the strategy overruled the active head, if there is one: the page opens
    there, and the figure is of it unless `step` says of which.
    """
    check_writable(*((out, "--out") if figure is None else (figure, "--figure")))
    try:
        player = Player(path, weights, strategy)
    except ValueError as error:
        raise UsageError(f"--strategy: {error}") from error
    recording = player.record(episodes=episodes, max_steps=max_steps, seed=seed, head=head, show=show)
    without = f" What the agent saw is not shown: {player.blind}." if player.blind else ""
    if figure is not None:
        flips = (number for number, one in enumerate(recording.steps) if recording.flip(one))
        shown = next(flips, 0) if step is None else step
        if not 0 <= shown < len(recording.steps):
            raise UsageError(f"--step must be in 0..{len(recording.steps) - 1}, got {step}")
        save(draw_step(recording, shown), figure)
        return f"Open {figure}, which is of step {shown}.{without}"
    maps = []
    if isinstance(player.config.env, DeepSeaConfig):
        maps = deep_sea_maps(player, path, seed, find_weights(path, weights))
    page = write_page(recording, maps, out)
    return f"{summary(recording)} Open {page} in a browser.{without}"
