"""A committed run that is repeated has an equal summary, and one that differs is reported."""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reproduction import rerun

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the runs were made with AVX2")
def test_a_committed_run_is_equal_when_repeated():
    command = [sys.executable, "-m", "reproduction.rerun", "deep-sea/size-10/evoi-reduce-sum", "1"]
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    found = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=ROOT)
    assert re.fullmatch(r"deep-sea/size-10/\S+: equal\n1 of 1 runs are equal\n", found.stdout), found.stderr


def test_a_run_that_differs_is_reported(tmp_path, monkeypatch, capsys):
    (shortest,) = rerun.shortest_runs(rerun.RESULTS / "deep-sea", 1)
    spoiled = json.loads(shortest.summary.read_text()) | {"solved_at": 9999}
    (tmp_path / "study/run").mkdir(parents=True)
    shutil.copy(shortest.config, tmp_path / "study/run")
    (tmp_path / "study/run/summary.json").write_text(json.dumps(spoiled))
    monkeypatch.setattr(rerun, "RESULTS", tmp_path)
    assert rerun.main("study", "5") == 1
    printed = capsys.readouterr().out
    assert "study/run: solved_at was 9999, now " in printed
    assert printed.endswith("0 of 1 runs are equal\n")
