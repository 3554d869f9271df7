"""Entry point of `bootdqn` and `python -m bootdqn`; Ctrl-C during imports prints one line instead of a traceback."""

import sys
from typing import NoReturn


def main() -> NoReturn:
    """Load the command line, run it and exit with its code."""
    try:
        from bootdqn.cli.main import main as command_line
    except KeyboardInterrupt:
        print("bootdqn: interrupted", file=sys.stderr)
        sys.exit(130)
    command_line()


if __name__ == "__main__":
    main()
