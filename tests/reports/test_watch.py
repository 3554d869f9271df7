"""The page that follows runs: to this machine alone, in a real browser, and ended by Ctrl-C."""

import http.client
import json
import os
import pty
import re
import select
import signal
import sys
import threading
import time

import pytest

from bootdqn.cli.main import run_command_line
from bootdqn.reports import watch
from reference.browser import Browser
from reference.run_directories import write_deep_sea


@pytest.fixture
def server(tmp_path, monkeypatch):
    monkeypatch.setattr(watch, "UPDATE_SECONDS", 0.0)
    (tmp_path / "runs").mkdir()
    with watch.WatchServer([tmp_path / "runs"], 0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def ask(server, path="/state", method="GET", **headers):
    connection = http.client.HTTPConnection(*server.server_address, timeout=30)
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer, content


def test_the_page_and_the_state_are_served(server, tmp_path):
    write_deep_sea(tmp_path / "runs/<b>", bad=[True, False])
    answer, page = ask(server, "/")
    assert (answer.status, answer.getheader("Content-Type")) == (200, "text/html; charset=utf-8")
    assert b"<script>" in page
    answer, content = ask(server)
    assert [run["run"] for run in json.loads(content)["runs"]] == ["<b>"]
    assert answer.getheader("Content-Security-Policy").startswith("default-src 'none'")
    answer, content = ask(server, method="HEAD")
    assert (answer.status, content) == (200, b"")


def test_a_state_that_has_not_changed_is_not_sent_again(server, tmp_path):
    tag = ask(server)[0].getheader("ETag")
    answer, content = ask(server, **{"If-None-Match": tag})
    assert (answer.status, content) == (304, b"")
    write_deep_sea(tmp_path / "runs/new")
    assert ask(server, **{"If-None-Match": tag})[0].status == 200


def test_requests_for_another_host_are_rejected(server):
    port = server.server_port
    for host in (f"127.0.0.1:{port}", f"localhost:{port}"):
        assert ask(server, Host=host)[0].status == 200
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1", f"127.0.0.1:{port + 1}", ""):
        answer, content = ask(server, Host=host)
        assert answer.status == 403
        assert b"runs" not in content
    assert server.server_address[0] == "127.0.0.1"


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_nothing_but_reading_is_allowed(server, method):
    assert ask(server, method=method)[0].status == 405


@pytest.mark.parametrize("path", ["/x", "/../runs", "/%2e%2e/etc/passwd", "/state/", "/state?x", "/watch.html"])
def test_nothing_else_is_served(server, path):
    assert ask(server, path)[0].status == 404


def test_files_are_read_no_more_often_than_needed(server, monkeypatch):
    monkeypatch.setattr(watch, "UPDATE_SECONDS", 3600.0)
    updates = []
    monkeypatch.setattr(server.watcher._runs, "update", lambda: updates.append(1) or {})
    ask(server)
    ask(server)
    assert len(updates) <= 1


def test_a_port_in_use_is_named_with_its_flag(server, tmp_path, capsys):
    assert run_command_line(["report", str(tmp_path), "--watch", "--port", str(server.server_port)]) == 2
    error = capsys.readouterr().err
    assert (
        error
        == f"bootdqn: --port {server.server_port} is in use; choose another, as in --port {server.server_port + 1}\n"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--watch --out x.html", "--watch writes no page"),
        ("--port 80", "--port needs --watch"),
        ("--watch --port 70000", "--port must be"),
    ],
)
def test_incompatible_flags_are_a_usage_error(tmp_path, capsys, flags, message):
    assert run_command_line(["report", str(tmp_path), *flags.split()]) == 2
    assert message in capsys.readouterr().err


def test_a_run_that_is_started_after_the_page_was_opened_appears_on_it(server, tmp_path):
    with Browser(tmp_path / "profile") as browser:
        browser.open(server.url)
        browser.wait_for("document.getElementById('counts')?.textContent.startsWith('No run yet')")
        write_deep_sea(tmp_path / "runs/late", "gain", bad=[True, True, False])
        browser.wait_for("document.querySelector('tr[data-run=late]')")
        assert browser.evaluate("document.getElementById('counts').textContent") == "1 run: 1 finished"
        assert browser.evaluate("document.querySelectorAll('#charts path').length") == 1
        write_deep_sea(tmp_path / "runs/<img src=x>", "greedy", status="failed")
        browser.wait_for("document.querySelectorAll('tr[data-run]').length === 2")
        assert browser.evaluate("document.querySelector('#runs td').textContent") == "<img src=x>"


def test_ctrl_c_ends_it_in_a_terminal(tmp_path):
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "bootdqn", "report", str(tmp_path), "--watch", "--port", "0"])
    screen, deadline = "", time.monotonic() + 100
    try:
        while "Ctrl-C ends it" not in screen:
            assert time.monotonic() < deadline, screen
            if select.select([terminal], [], [], 1)[0]:
                screen += os.read(terminal, 4096).decode()
        port = int(re.search(r"http://127\.0\.0\.1:(\d+)/", screen)[1])
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        connection.request("GET", "/state")
        assert connection.getresponse().status == 200
        connection.close()
        os.write(terminal, b"\x03")
        while True:
            try:
                screen += os.read(terminal, 4096).decode()
            except OSError:  # the child has closed the terminal
                break
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        raise
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 130
    assert "bootdqn: interrupted" in screen
    assert "Traceback" not in screen
