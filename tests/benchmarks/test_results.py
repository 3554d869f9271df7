"""The rows of the benchmarks, and the work that the limits of the machine are computed from."""

import json

import pytest

from benchmarks.limits import SIDE, Work, count_work, least_seconds
from benchmarks.minatar import settings
from benchmarks.results import Row, read, write
from reproduction import studies, tables


@pytest.mark.parametrize(
    ("ratio", "limit", "met"),
    [(4.0, ">= 4", True), (3.9, ">= 4", False), (2.5, "<= 2.5", True), (2.6, "<= 2.5", False), (None, ">= 4", None)],
)
def test_a_ratio_keeps_its_limit_or_not(ratio, limit, met):
    assert Row("speed", "peer", 1.0, "us", ratio, limit).met is met


def test_a_row_without_a_limit_can_neither_keep_nor_miss_it():
    assert Row("speed", "peer", 1.0, "us", 2.0).met is None


def test_rows_are_read_as_they_were_written_with_the_machine_once(tmp_path):
    rows = [Row("speed", "peer", 1.5, "us", 2.0, ">= 1"), Row("memory", "", 7.0, "bytes")]
    write(tmp_path / "rows.json", rows)
    assert read(tmp_path / "rows.json") == rows
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
