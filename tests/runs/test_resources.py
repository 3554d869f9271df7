"""Available memory and cores: the least that the machine and the control groups of the process leave."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.runs.resources import available_cores, available_memory

MEBIBYTE = 2**20
NAMES = {
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "inactive_file 0\ntotal_inactive_file"),
    2: ("memory.max", "memory.current", "inactive_file"),
}
FOLDERS = {1: "sys/fs/cgroup/memory", 2: "sys/fs/cgroup"}
WITHIN = {1: "8:cpu,cpuacct:/elsewhere\n5:memory:{}\n0::/other\n", 2: "0::{}\n"}


class Machine:
    """The files in which Linux reports memory, below a directory."""

    def __init__(self, root, version=2):
        self.root, self.version = root, version

    def write(self, name, text):
        file = self.root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def has(self, mebibytes):
        self.write("proc/meminfo", f"MemTotal:  99999999 kB\nMemFree: 3 kB\nMemAvailable:  {mebibytes * 1024} kB\n")

    def runs_us_in(self, group):
        self.write("proc/self/cgroup", WITHIN[self.version].format(f"/{group}"))

    def limits(self, group, limit, usage, cache=0):
        limit_name, usage_name, cache_name = NAMES[self.version]
        directory = f"{FOLDERS[self.version]}/{group}"
        self.write(f"{directory}/{limit_name}", f"{limit}\n")
        self.write(f"{directory}/{usage_name}", f"{usage * MEBIBYTE}\n")
        self.write(f"{directory}/memory.stat", f"anon 7\nactive_file 9\n{cache_name} {cache * MEBIBYTE}\nslab 3\n")

    def mebibytes(self):
        return available_memory(self.root) / MEBIBYTE


@pytest.fixture(params=[1, 2], ids=["version 1", "version 2"])
def machine(request, tmp_path):
    return Machine(tmp_path, request.param)


def test_no_more_memory_is_available_than_this_machine_has():
    assert MEBIBYTE < available_memory() <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_without_control_groups_the_memory_is_that_of_the_machine(machine):
    machine.has(700)
    assert machine.mebibytes() == 700


def test_without_any_file_the_memory_is_unknown(machine):
    assert available_memory(machine.root) is None


def test_a_limit_leaves_what_is_not_used_and_the_cache_that_is_not_in_use(machine):
    machine.has(700)
    machine.runs_us_in("job/step")
    machine.limits("job/step", 500 * MEBIBYTE, usage=300, cache=40)
    assert machine.mebibytes() == 240


def test_the_limit_of_a_parent_counts_and_that_of_another_group_does_not(machine):
    machine.has(700)
    machine.runs_us_in("job/step/task")
    machine.limits("job/step", 500 * MEBIBYTE, usage=100)
    machine.limits("job", 600 * MEBIBYTE, usage=350)
    machine.limits("job/other", 1, usage=1)
    assert machine.mebibytes() == 250


def test_the_machine_counts_where_it_has_less_than_the_limit_leaves(machine):
    machine.has(70)
    machine.runs_us_in("job")
    machine.limits("job", 500 * MEBIBYTE, usage=100)
    assert machine.mebibytes() == 70


@pytest.mark.parametrize("group", ["", "docker/0123abc"])
def test_in_a_container_its_own_group_is_the_outermost_one(machine, group):
    machine.has(700)
    machine.runs_us_in(group)
    machine.limits("", 300 * MEBIBYTE, usage=100)
    assert machine.mebibytes() == 200


@pytest.mark.parametrize("version", [1, 2])
def test_no_limit_is_no_limit(tmp_path, version):
    machine = Machine(tmp_path, version)
    machine.has(700)
    machine.runs_us_in("job")
    machine.limits("job", "max" if version == 2 else 9223372036854771712, usage=100)
    assert machine.mebibytes() == 700


def test_more_used_than_allowed_leaves_nothing(machine):
    machine.runs_us_in("job")
    machine.limits("job", 100 * MEBIBYTE, usage=130)
    assert machine.mebibytes() == 0


@pytest.mark.parametrize("missing", ["limit", "usage", "cache"])
def test_a_missing_file_is_skipped(machine, missing):
    machine.has(700)
    machine.runs_us_in("job")
    machine.limits("job", 500 * MEBIBYTE, usage=100, cache=20)
    limit, usage, _ = NAMES[machine.version]
    (
        machine.root / FOLDERS[machine.version] / "job" / {"limit": limit, "usage": usage}.get(missing, "memory.stat")
    ).unlink()
    assert machine.mebibytes() == (400 if missing == "cache" else 700)


@given(st.data())
def test_files_with_arbitrary_content_raise_nothing(tmp_path_factory, data):
    machine = Machine(tmp_path_factory.mktemp("machine"), data.draw(st.sampled_from([1, 2])))
    machine.limits("job", 1, usage=1)
    limit, usage, _ = NAMES[machine.version]
    group = f"{FOLDERS[machine.version]}/job"
    for name in ("proc/meminfo", "proc/self/cgroup", f"{group}/{limit}", f"{group}/{usage}", f"{group}/memory.stat"):
        text = data.draw(st.text(st.sampled_from("07:/. \nmaxMemAvailable,٣²") | st.characters(codec="utf-8")))
        machine.write(
            name, text if name != "proc/self/cgroup" else data.draw(st.sampled_from([text, "0::/job", "1:memory:/job"]))
        )
    assert (available_memory(machine.root) or 0) >= 0


# Cores


def with_quota(machine, group, quota, period=100_000):
    if machine.version == 1:
        machine.write("proc/self/cgroup", f"5:memory:/other\n8:cpu,cpuacct:/{group}\n")
        machine.write(f"sys/fs/cgroup/cpu/{group}/cpu.cfs_quota_us", f"{-1 if quota == 'max' else quota}\n")
        machine.write(f"sys/fs/cgroup/cpu/{group}/cpu.cfs_period_us", f"{period}\n")
    else:
        machine.runs_us_in(group)
        machine.write(f"sys/fs/cgroup/{group}/cpu.max", f"{quota} {period}\n")


@pytest.mark.parametrize(
    ("quota", "cores"),
    [("max", 8), (100_000, 1), (250_000, 2), (50_000, 1), (800_000, 8), (9_900_000, 8), ("rubbish", 8)],
)
def test_a_group_may_leave_fewer_cores_than_the_process_may_run_on(machine, monkeypatch, quota, cores):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    with_quota(machine, "job", quota)
    assert available_cores(machine.root) == cores


def test_the_tightest_of_the_groups_around_a_process_counts(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    with_quota(machine, "job", 300_000)
    with_quota(machine, "job/step", 700_000)
    assert available_cores(machine.root) == 3


def test_cores_that_the_process_may_not_run_on_do_not_count(machine, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3})
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert available_cores(machine.root) == 1
    monkeypatch.delattr(os, "sched_getaffinity")
    assert available_cores(machine.root) == 64
