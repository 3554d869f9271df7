"""Worker processes that a fork server starts which only they use.

Python has one fork server for each process. Ours is started with signals blocked, so that no signal to a new worker is
lost, and with PyTorch imported; a user's own processes must have neither.
"""

import sys
from multiprocessing import context, forkserver
from multiprocessing.process import BaseProcess
from types import FunctionType
from typing import Any

if sys.platform == "linux":
    from multiprocessing import popen_forkserver

    class _PrivateServer(forkserver.ForkServer):
        read_signed = staticmethod(forkserver.read_signed)

    _SERVER = _PrivateServer()
    _SERVER.set_forkserver_preload(["bootdqn.training.run"])

    class _Popen(popen_forkserver.Popen):
        """A process of the private server: Python's own code, in which `forkserver` is that one."""

        _launch = FunctionType(
            popen_forkserver.Popen._launch.__code__,  # type: ignore[attr-defined]
            vars(popen_forkserver) | {"forkserver": _SERVER},
        )

    class WorkerProcess(context.ForkServerProcess):
        """A process of the private fork server."""

        @staticmethod
        def _Popen(process: BaseProcess) -> Any:  # noqa: N802 - Python's name
            return _Popen(process)

else:  # a process that has imported PyTorch may not be forked
    WorkerProcess = context.SpawnProcess
