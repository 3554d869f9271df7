"""Serve a page on runs while they are trained, to this machine only."""

import errno
import hashlib
import json
import threading
import time
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bootdqn.common.errors import UsageError, os_error_reason
from bootdqn.reports.live import LiveRuns

HOST, DEFAULT_PORT = "127.0.0.1", 8765
UPDATE_SECONDS = 2.0
"""Files are looked at no more often, and only while a page is open."""
CLIENT_TIMEOUT_SECONDS = 30.0
_PAGE = Path(__file__).with_name("watch.html")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; img-src data:"


class Watcher:
    """The state of runs below some directories, updated when it is asked for."""

    def __init__(self, roots: Sequence[Path]) -> None:
        self._runs = LiveRuns(roots)
        self._lock = threading.Lock()
        self._updated, self._content, self._tag = -UPDATE_SECONDS, b"", ""

    def state(self) -> tuple[bytes, str]:
        """Return the state as JSON, and its tag, which changes with it."""
        with self._lock:
            if time.monotonic() - self._updated >= UPDATE_SECONDS:
                self._content = json.dumps(self._runs.update(), allow_nan=False).encode()
                self._tag = f'"{hashlib.sha256(self._content).hexdigest()[:16]}"'
                self._updated = time.monotonic()
            return self._content, self._tag


class _Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD for the page and the state; nothing is served from the disk."""

    protocol_version = "HTTP/1.1"
    timeout = CLIENT_TIMEOUT_SECONDS
    server: "WatchServer"

    def parse_request(self) -> bool:
        """Read a request; refuse one for another host, as a page that rebinds its name to this machine would send."""
        if not super().parse_request():
            return False
        if self.command not in ("GET", "HEAD"):
            self.send_error(HTTPStatus.METHOD_NOT_ALLOWED)
            return False
        if self.headers.get_all("Host", []) not in [[name] for name in self.server.names]:
            self.send_error(HTTPStatus.FORBIDDEN, "This host is not served")
            return False
        return True

    def do_GET(self) -> None:
        """Answer with the page, the state, or that there is nothing else."""
        if self.path == "/":
            self._send(_PAGE.read_bytes(), "text/html; charset=utf-8", "")
        elif self.path == "/state":
            content, tag = self.server.watcher.state()
            self._send(content, "application/json", tag)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    do_HEAD = do_GET  # noqa: N815

    def _send(self, content: bytes, kind: str, tag: str) -> None:
        unchanged = bool(tag) and self.headers.get("If-None-Match") == tag
        self.send_response(HTTPStatus.NOT_MODIFIED if unchanged else HTTPStatus.OK)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(0 if unchanged else len(content)),
            "Cache-Control": "no-cache",
            "Content-Security-Policy": _POLICY,
            "Cross-Origin-Resource-Policy": "same-origin",
            "X-Content-Type-Options": "nosniff",
        }
        for name, value in (headers | ({"ETag": tag} if tag else {})).items():
            self.send_header(name, value)
        self.end_headers()
        if not unchanged and self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        """Print nothing about requests."""


class WatchServer(ThreadingHTTPServer):
    """A server on the loopback interface."""

    daemon_threads = True

    def __init__(self, roots: Sequence[Path], port: int) -> None:
        """Listen on `port` (0: any that is free).

        Raises:
            UsageError: A directory does not exist, or the port cannot be used.
        """
        for root in roots:
            if not root.is_dir():
                raise UsageError(f"{root} is not a directory; name one that holds runs, or will")
        self.watcher = Watcher(roots)
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            reason = "in use" if error.errno == errno.EADDRINUSE else f"not available ({os_error_reason(error)})"
            raise UsageError(
                f"--port {port} is {reason}; choose another, as in --port {max(port + 1, 1024)}"
            ) from error
        self.names = [f"{name}:{self.server_port}" for name in (HOST, "localhost")]

    @property
    def url(self) -> str:
        """Address of the page."""
        return f"http://{self.names[0]}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore what goes wrong with one connection, as where a page is closed in the middle of an answer."""


def watch_runs(roots: Sequence[Path], port: int) -> None:
    """Serve the page on the runs below `roots` until Ctrl-C."""
    with WatchServer(roots, port) as server:
        print(f"Open {server.url} in a browser of this machine; Ctrl-C ends it.", flush=True)
        server.serve_forever()
