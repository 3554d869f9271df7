"""A page in headless Chromium, as a reader would open it."""

import html
import json
import re
import shutil
import subprocess

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
    """Return the data-told attribute, JSON, that `script` sets on the body of page.html in `directory`."""
    page = directory / "driven.html"
    page.write_text((directory / "page.html").read_text().replace("</body>", script + "</body>"))
    dom = opened(page, directory / "profile")
    return json.loads(html.unescape(re.search(r'data-told="(.*?)"', dom).group(1)))
