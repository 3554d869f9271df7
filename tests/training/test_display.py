"""The progress line of a run in a terminal."""

import re

from bootdqn.training.callbacks import Progress
from bootdqn.training.display import progress_line


def test_the_progress_line_leaves_room_for_the_echo_of_ctrl_c(monkeypatch, capsys):
    for name, value in (("COLUMNS", "80"), ("FORCE_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("bootdqn.training.display.can_redraw", lambda _: True)
    with progress_line("runs/" + "a" * 100) as callbacks:
        callbacks.show(Progress(0.5, "episode 1", "9 steps/s", 60.0, "regret 1.000"))
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err))
    assert max(map(len, lines)) == 78
    assert any("episode 1" in line for line in lines)


def test_a_narrow_terminal_keeps_the_time_left(monkeypatch, capsys):
    for name, value in (("COLUMNS", "80"), ("FORCE_COLOR", "1"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("bootdqn.training.display.can_redraw", lambda _: True)
    with progress_line("runs/[bold]a-run") as callbacks:
        callbacks.show(Progress(0.5, "episode 1,000", "9,000 steps/s", 61.0, "a note" * 10))
    lines = re.split(r"[\r\n]+", re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err))
    shown = [line for line in lines if "episode" in line]
    assert shown, "the line is drawn once at least"
    assert all("runs/[bold]a-run" in line and "at most 1m 01s left" in line for line in shown)
    assert all(len(line) <= 78 and line.rstrip().endswith("…") for line in shown)
