"""Commands in a real pseudo-terminal, as a person sees them.

Starting Python and importing everything takes seconds, so a server does it once and forks a child for each command:
`python terminal.py` reads requests from its standard input, one JSON object a line, and answers in the same way.
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


class Terminal:
    """Runs commands in a pseudo-terminal, one after the other."""

    def __init__(self):
        self._server = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, arguments, *, columns, environment, directory):
        """Run `bootdqn` with `arguments` in a terminal; return its exit code and all that it wrote to the screen.

        Args:
            arguments: The words of the command line.
            columns: Width of the terminal.
            environment: Variables to set; those about colours are unset otherwise.
            directory: Where to run it.
        """
        request = {
            "arguments": arguments,
            "columns": columns,
            "environment": environment,
            "directory": str(directory),
        }
        self._server.stdin.write(json.dumps(request) + "\n")
        self._server.stdin.flush()
        answer = json.loads(self._server.stdout.readline())
        return answer["code"], answer["screen"]

    def close(self):
        """End the server."""
        self._server.stdin.close()
        self._server.stdout.close()
        self._server.wait()


def run_in_child(run, *, columns, environment, directory):
    """Call `run` in a forked child whose standard streams are a new terminal; return exit code and screen."""
    child, screen = pty.fork()
    if child == 0:
        _become_a_command(columns, environment, directory)
        code = 70
        try:
            code = run()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    return _watch(child, screen)


def _become_a_command(columns, environment, directory):
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES", "CI", "TTY_COMPATIBLE"):
        os.environ.pop(name, None)
    os.environ.update(environment)
    os.chdir(directory)
    sys.stdout, sys.stderr = os.fdopen(1, "w", buffering=1), os.fdopen(2, "w", buffering=1)


def _watch(child, screen):
    """Read the screen until the child ends; one that hangs is killed, and its code is -SIGKILL."""
    written, deadline = bytearray(), time.monotonic() + SECONDS
    while True:
        if not select.select([screen], [], [], max(deadline - time.monotonic(), 0))[0]:
            os.kill(child, signal.SIGKILL)
        try:
            piece = os.read(screen, 65536)
        except OSError:  # Linux's way to say that the other side is closed
            break
        if not piece:
            break
        written += piece
    os.close(screen)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), written.decode(errors="replace").replace("\r\n", "\n")


def _serve():
    import bootdqn.envs.atari
    import bootdqn.inspector.inspect
    import bootdqn.report.report
    import bootdqn.sweeps.executor
    import bootdqn.training.evaluation
    import bootdqn.training.run  # noqa: F401, everything that a command may import later
    from bootdqn.cli.main import run_command_line

    for line in sys.stdin:
        request = json.loads(line)
        arguments = request.pop("arguments")
        code, screen = run_in_child(lambda: run_command_line(arguments), **request)  # noqa: B023, called at once
        print(json.dumps({"code": code, "screen": screen}), flush=True)


if __name__ == "__main__":
    _serve()
