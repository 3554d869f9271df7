"""Checks of arguments that the command line and Python share; their messages name flags or arguments."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from bootdqn.common.fields import Flag, Pattern, Range

HtmlFile = Annotated[Path, Pattern(r".*[^/]\.html", "an .html file")]
FigureFile = Annotated[Path, Pattern(r".*[^/]\.(png|svg|pdf)", "a .png, .svg or .pdf file")]
VideoFile = Annotated[Path, Pattern(r".*[^/]\.(mp4|gif)", "an .mp4 or a .gif file")]
Port = Annotated[int, Range(ge=0, le=65535)]
GpuShare = Annotated[float, Range(ge=0)]


def check_report(out: Path | None, baseline: str | None, port: int | None, *, watch: bool, as_flags: bool) -> None:
    """Raise a ValueError for options of a report that do not go together.

    Args:
        out: The page to write.
        baseline: The algorithm that the others are compared with.
        port: Port of the page that follows the runs.
        watch: Whether that page is served, and none written.
        as_flags: Whether messages name flags, `--out`, or arguments of Python, `out`.
    """
    name = _name_format(as_flags=as_flags)
    if watch and out is not None:
        raise ValueError(f"{name('watch')} writes no page; leave out {name('out')}, or {name('watch')}")
    if watch and baseline is not None:
        raise ValueError(f"{name('watch')} compares nothing; leave out {name('baseline')}, or {name('watch')}")
    if port is not None and not watch:
        raise ValueError(f"{name('port')} needs {name('watch')}")


def check_inspection(out: Path | None, figure: Path | None, step: int | None, *, as_flags: bool) -> None:
    """Raise a ValueError for options of the inspector that do not go together; `as_flags` as in `check_report`."""
    name = _name_format(as_flags=as_flags)
    if out is not None and figure is not None:
        raise ValueError(
            f"{name('figure')} is plotted instead of the page; leave out {name('out')}, or {name('figure')}"
        )
    if step is not None and figure is None:
        raise ValueError(
            f"{name('step')} needs {name('figure')}; the page shows every step, and PAGE.html#12 opens at step 12"
        )


def check_sweep(
    *,
    workers: int | None,
    ray: str | None,
    gpus_per_run: float,
    dry_run: bool,
    cluster: Path | None,
    as_flags: bool,
) -> None:
    """Raise a ValueError for options of a sweep that its backend does not have; `as_flags` as in `check_report`."""
    name = _name_format(as_flags=as_flags)
    if ray is not None and workers is not None:
        raise ValueError(f"{name('workers')} is for this machine; with {name('ray')} the cluster's CPUs decide")
    if ray is None and gpus_per_run:
        raise ValueError(f"{name('gpus_per_run')} needs {name('ray')}; on this machine device=cuda is enough")
    if cluster is not None and not dry_run:
        raise ValueError(
            f"{name('cluster')} is a simulation, and needs {name('dry_run')}; {name('ray')} trains on a real cluster"
        )
    if cluster is not None and (workers is not None or ray is not None):
        raise ValueError(
            f"{name('cluster')} simulates the runs on the nodes of its file; leave out {name('workers')} and "
            f"{name('ray')}"
        )


def _name_format(*, as_flags: bool) -> Callable[[str], str]:
    """Return the function that formats the name of an argument in a message."""
    return Flag().name_for if as_flags else "`{}`".format
