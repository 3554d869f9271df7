"""`bootdqn report`: one page with the tables and figures of many runs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from bootdqn.checks import HtmlFile, Port, check_report
from bootdqn.common.errors import UsageError, WriteError
from bootdqn.common.fields import Flag, check_fields


@dataclass(frozen=True)
class ReportCommand:
    """Report on all runs below some directories."""

    directories: Annotated[tuple[Path, ...], Flag(positional=True, metavar="DIR")]
    """Directories that hold runs, finished or not, at any depth."""
    out: HtmlFile | None = None
    """The page (None: report.html in the directory, or here for several); figures and tables go to a directory beside
    it."""
    baseline: str | None = None
    """Compare every algorithm with this one, by its label in the report (None: BootDQN, that with the fewest changed
    settings, where there are runs of it)."""
    watch: bool = False
    """Instead of writing the page, serve one to this machine that follows the runs while they are trained: curves,
    progress, speed, time left, warnings and failures. Ctrl-C ends it."""
    port: Port | None = None
    """Port of --watch (None: 8765; 0: any that is free)."""

    def __post_init__(self) -> None:
        check_fields(self)
        check_report(self.out, self.baseline, self.port, watch=self.watch, as_flags=True)

    def execute(self) -> int:
        """Write the page and print its name, or serve one."""
        if self.watch:
            from bootdqn.reports.watch import DEFAULT_PORT, watch_runs

            watch_runs(self.directories, DEFAULT_PORT if self.port is None else self.port)
            return 0
        from bootdqn.reports.report import default_page, write_report

        out = self.out or default_page(self.directories)
        try:
            page = write_report(self.directories, out, self.baseline)
        except WriteError as error:
            raise UsageError(f"{error}; --out FILE.html writes it elsewhere") from error
        print(f"Open {page} in a browser; its figures and tables are in {page.with_name(f'{page.stem}_files')}.")
        return 0
