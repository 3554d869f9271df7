"""A page in headless Chromium, as a reader would open it."""

import html
import itertools
import json
import os
import re
import select
import shlex
import shutil
import subprocess
import time

import pytest


def opened(page, profile, *flags, place=""):
    """Return what `page`, at `place`, becomes in a browser with an empty `profile`; a word on the console fails."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        pytest.skip("no chromium: apt-get install chromium")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
    command += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]
    command += ["--enable-logging=stderr", "--window-size=1200,900", f"--user-data-dir={profile}", *flags]
    result = subprocess.run(
        [*command, "--dump-dom", page.as_uri() + place], capture_output=True, text=True, timeout=120, check=True
    )
    assert "CONSOLE" not in result.stderr, result.stderr
    return result.stdout


def data_of(page):
    """Return the data that the page carries."""
    return json.loads(re.search(r'type="application/json">(.*?)</script>', page.read_text(), re.DOTALL).group(1))


def driven(directory, script):
    """Return the data-result attribute, JSON, that `script` sets on the body of page.html in `directory`."""
    page = directory / "driven.html"
    page.write_text((directory / "page.html").read_text().replace("</body>", script + "</body>"))
    dom = opened(page, directory / "profile")
    return json.loads(html.unescape(re.search(r'data-result="(.*?)"', dom).group(1)))


class Browser:
    """Headless Chromium that stays open, driven by the DevTools protocol over a pair of pipes."""

    def __init__(self, profile):
        browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if browser is None:
            pytest.skip("no chromium: apt-get install chromium")
        their_input, self._output = os.pipe()
        self._input, their_output = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync"]
        flags += ["--disable-component-update", "--no-first-run", f"--user-data-dir={profile}"]
        command = shlex.join([browser, *flags, "--remote-debugging-pipe"])
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec {command} 3<&{their_input} 4>&{their_output}"],
            pass_fds=(their_input, their_output),
            stderr=subprocess.DEVNULL,
        )
        os.close(their_input)
        os.close(their_output)
        self._numbers, self._waiting, self._session = itertools.count(1), b"", None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self._output)
        self._process.terminate()
        self._process.wait(timeout=30)
        os.close(self._input)

    def open(self, address):
        """Open a page."""
        target = self._call("Target.createTarget", url=address)["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def evaluate(self, expression):
        """Return the value of a JavaScript expression on the page."""
        return self._call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def wait_for(self, expression, seconds=60):
        """Wait until an expression is true on the page."""
        deadline = time.monotonic() + seconds
        while not self.evaluate(f"!!({expression})"):
            assert time.monotonic() < deadline, f"{expression} did not become true"
            time.sleep(0.1)

    def _call(self, method, **parameters):
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session and not method.startswith("Target.") else {}
        os.write(self._output, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._waiting:
                ready, _, _ = select.select([self._input], [], [], 60)
                chunk = os.read(self._input, 2**16) if ready else b""
                assert chunk, "the browser does not answer"
                self._waiting += chunk
            answer, self._waiting = self._waiting.split(b"\0", 1)
            answer = json.loads(answer)
            if answer.get("id") == number:
                assert "error" not in answer, answer
                return answer["result"]
