"""Commands in a real pseudo-terminal, as a person sees them.

Starting Python and importing everything takes seconds, so a server does it once and forks a child for each command,
which runs in one terminal after the other: `python terminal.py` reads requests from its standard input, one JSON object
a line, and answers in the same way.
"""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time

SECONDS = 120
"""How long a command may take before it counts as hanging."""


class Terminals:
    """Runs commands, one after the other, each in several pseudo-terminals."""

    def __init__(self):
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, arguments, terminals, directory):
        """Run `bootdqn` with `arguments` in each terminal; return pairs of its exit code and all that the screen shows.

        Args:
            arguments: The words of the command line.
            terminals: Of each, `columns`, its width, and `environment`, variables to set; those about colours are unset
                otherwise.
            directory: Where to run it.
        """
        request = {"arguments": arguments, "terminals": terminals, "directory": str(directory)}
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        return [(answer["code"], answer["screen"]) for answer in json.loads(self._server.stdout.readline())]

    def close(self):
        """End the server."""
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait()


def run_in_child(run, terminals, directory):
    """Call `run` in a forked child, in one new terminal after the other; return pairs of exit code and screen.

    A child that hangs is killed, and its code is -SIGKILL; one that is killed runs in no further terminal.
    """
    pairs = [pty.openpty() for _ in terminals]
    for (_, slave), terminal in zip(pairs, terminals, strict=True):
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, terminal["columns"], 0, 0))
    codes, send = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        os.close(codes)
        for screen, _ in pairs:
            os.close(screen)
        os.chdir(directory)
        _run_in_each(run, [slave for _, slave in pairs], [terminal["environment"] for terminal in terminals], send)
        os._exit(0)
    os.close(send)
    for _, slave in pairs:
        os.close(slave)
    screens = [_watch(child, screen) for screen, _ in pairs]
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(codes) as lines:
        found = [int(line) for line in lines]
    return list(zip(found + [ended] * (len(terminals) - len(found)), screens, strict=True))


def _run_in_each(run, slaves, environments, send):
    """Run in each terminal; send the exit codes, a line each. A terminal's last descriptor is closed by the next."""
    for slave, environment in zip(slaves, environments, strict=True):
        for stream in (0, 1, 2):
            os.dup2(slave, stream)
        os.close(slave)
        for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "CI", "TTY_COMPATIBLE"):
            os.environ.pop(name, None)
        os.environ.update(environment)
        sys.stdout, sys.stderr = (os.fdopen(stream, "w", buffering=1, closefd=False) for stream in (1, 2))
        code = 70
        try:
            code = run()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
        sys.stdout.flush()
        sys.stderr.flush()
        os.write(send, f"{code}\n".encode())


def _watch(child, screen):
    """Return what a screen shows, read until its terminal is closed; a child that hangs is killed."""
    written, deadline = bytearray(), time.monotonic() + SECONDS
    while True:
        if not select.select([screen], [], [], max(deadline - time.monotonic(), 0))[0]:
            os.kill(child, signal.SIGKILL)
        try:
            piece = os.read(screen, 65536)
        except OSError:  # on Linux: the other side is closed
            break
        if not piece:
            break
        written += piece
    os.close(screen)
    return written.decode(errors="replace").replace("\r\n", "\n")


def _serve():
    import bootdqn.envs.atari
    import bootdqn.inspector.page
    import bootdqn.reports.report
    import bootdqn.sweeps.run_sweep
    import bootdqn.training.evaluation
    import bootdqn.training.run  # noqa: F401, everything that a command may import later
    from bootdqn.cli.main import run_command_line

    for line in sys.stdin:
        request = json.loads(line)
        arguments = request.pop("arguments")
        answers = run_in_child(lambda: run_command_line(arguments), **request)  # noqa: B023, called at once
        print(json.dumps([{"code": code, "screen": screen} for code, screen in answers]), flush=True)


if __name__ == "__main__":
    _serve()
