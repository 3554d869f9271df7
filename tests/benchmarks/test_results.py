"""The rows of the benchmarks, and the work that the limits of the machine are computed from."""

import json
import math
import os

import pytest

from benchmarks.limits import SIDE, Work, count_work, least_seconds, rows
from benchmarks.minatar import settings
from benchmarks.results import Row, read, write
from benchmarks.turns import race
from reproduction import studies, tables


@pytest.mark.parametrize(
    ("ratio", "limit", "met"),
    [(4.0, ">= 4", True), (3.9, ">= 4", False), (2.5, "<= 2.5", True), (2.6, "<= 2.5", False), (None, ">= 4", None)],
)
def test_a_ratio_keeps_its_limit_or_not(ratio, limit, met):
    assert Row("speed", "peer", 1.0, "us", ratio, limit).met is met


def test_a_row_without_a_limit_can_neither_keep_nor_miss_it():
    assert Row("speed", "peer", 1.0, "us", 2.0).met is None


def test_a_peer_that_ended_early_neither_keeps_nor_misses_a_limit():
    assert Row("speed", "peer", 1.0, "us", float("nan"), ">= 4").met is None


def takes_turns():
    return lambda steps: steps


def ends_early():
    return lambda _: os._exit(7)


def test_the_other_benchmarks_continue_when_the_process_of_a_peer_ends(capfd):
    makers = {"ours": takes_turns, "peer": ends_early, "other": takes_turns}
    seconds = race(makers, rounds=3, steps=2, warm_up=1, plain=frozenset({"peer", "other"}))
    assert seconds["ours"] >= 0
    assert seconds["other"] >= 0
    assert math.isnan(seconds["peer"])
    assert "peer: its process ended early; the comparison goes on without it" in capfd.readouterr().err


def test_nothing_is_compared_without_this_program():
    with pytest.raises(SystemExit, match="ours: its process ended early"):
        race({"ours": ends_early}, rounds=1, steps=1, warm_up=1, plain=frozenset())


def test_the_limit_of_the_machine_is_shown_beside_both_peers():
    faster, slower = rows("MinAtar", {"products": 0.1, "game": 0.1}, {"plain": 0.8, "one": 0.4}, "plain", "one")
    assert (faster.peer, faster.ratio) == ("speed of plain", pytest.approx(4))
    assert (slower.peer, slower.ratio) == ("time of one", pytest.approx(0.5))
    assert faster.value == slower.value == pytest.approx(2e5)


def test_rows_are_read_as_they_were_written_with_the_machine_once(tmp_path):
    measured = [Row("speed", "peer", 1.5, "us", 2.0, ">= 1"), Row("memory", "", 7.0, "bytes")]
    write(tmp_path / "rows.json", measured)
    assert read(tmp_path / "rows.json") == measured
    written = json.loads((tmp_path / "rows.json").read_text())
    assert set(written) == {"machine", "rows"}
    assert {"processor", "instructions", "packages"} < set(written["machine"])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_products_of_an_update_are_those_of_the_layers(precision):
    heads, batch, channels, actions, windows = 10, 32, 4, 3, 64
    convolution = 2 * batch * windows * 16 * 9 * channels
    first, second = 2 * batch * 1024 * heads * 128, 2 * batch * heads * 128 * actions
    work = count_work(settings("breakout", heads, precision))
    assert work.flops == 3 * (convolution + first + second) + convolution + 2 * (first + second)
    assert work.parameters == 16 * (9 * channels + 1) + heads * (1025 * 128 + 129 * actions)
    assert work.weight_bytes == {"fp32": 4, "bf16": 2}[precision]


def test_the_least_time_adds_products_memory_and_the_game():
    work = Work(flops=4 * SIDE**3, parameters=300, weight_bytes=4, update_every=4)
    seconds = {"product in fp32": 0.5, "memory": 0.1, "game": 0.01}
    parts = least_seconds(work, "fp32", seconds)
    assert parts == pytest.approx({"products": 0.25, "Adam": 28 / 12 * 0.1 / 4, "acting": 0.1 / 3, "game": 0.01})


@pytest.mark.parametrize("name", ["minatar", "atari", "replay"])
def test_the_docs_show_every_row_of_a_benchmark_and_the_instruction_set(name):
    measured, shown = studies.benchmark("speed", name), tables.speed_rows(name)("speed")
    lines = [line for line in shown.splitlines() if line.startswith("| ")][1:]
    for row, line in zip(measured["rows"], lines, strict=True):
        met = {None: "", True: "yes", False: "no"}[Row(**row).met]
        assert line.startswith(f"| {row['what']} |")
        assert line.endswith(f"| {met} |")
    assert f"{measured['machine']['instructions']} instructions" in shown
