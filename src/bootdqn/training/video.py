"""Videos of episodes."""

from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import DependencyNotInstalled

from bootdqn.common.errors import UsageError, attribute_errors_to, install_command
from bootdqn.common.specs import Array

VIDEO_FPS = 15


class VideoWriter:
    """Writes the rendered frames of an environment to a video."""

    def __init__(self, path: Path, render: Callable[[], Any]) -> None:
        try:
            import imageio.v2 as imageio
        except ImportError:
            raise UsageError(f"--video needs imageio: {install_command('video')}") from None
        path.parent.mkdir(parents=True, exist_ok=True)
        self._render = render
        gif: dict[str, Any] = {"duration": 1000 / VIDEO_FPS}
        mp4: dict[str, Any] = {"fps": VIDEO_FPS, "macro_block_size": 2}
        self._writer = imageio.get_writer(path, **(gif if path.suffix == ".gif" else mp4))

    def add_frame(self) -> None:
        """Add a frame.

        Raises:
            UsageError: Rendering needs a package that is not installed.
        """
        with attribute_errors_to("the environment"):
            try:
                frame = _even_sides(np.asarray(self._render()))
            except DependencyNotInstalled as error:
                raise UsageError(f"--video: {error}, or {install_command('video')}") from error
        self._writer.append_data(frame)

    def __enter__(self) -> "VideoWriter":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close the file; an error that was raised before takes precedence."""
        with suppress(Exception) if kind else nullcontext():
            self._writer.close()


def _even_sides(frame: Array) -> Array:
    """Return the frame without an odd last row or column, which video encoders refuse."""
    return frame[: frame.shape[0] // 2 * 2, : frame.shape[1] // 2 * 2]
