"""The simulation of a sweep on a cluster, against a clock that ticks and against closed forms."""

import itertools
from math import ceil, exp, sqrt
from statistics import mean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bootdqn.common.errors import UsageError
from bootdqn.sweeps import simulate as simulation
from bootdqn.sweeps.cluster_file import ClusterConfig
from bootdqn.sweeps.simulate import Job, node_failures, simulate
from reference.cluster import course

MIB = 2**20


def job(seconds, **needs):
    """Return a run of this length, on one core, whose checkpoints are empty."""
    sizes = dict.fromkeys(
        ["memory", "state", "replay", "replay_per_second", "replay_segment", "disk", "disk_after"], 0.0
    )
    return Job(seconds=seconds, **{"cores": 1, "checkpoint_interval": 64.0, **sizes, **needs})


def cluster(**settings):
    return ClusterConfig(**{"cores": 1, "memory_gib": 1.0, "startup_seconds": 0.0, **settings})


@given(
    lengths=st.lists(st.integers(1, 900), min_size=1, max_size=7),
    nodes=st.integers(1, 3),
    slots=st.integers(1, 3),
    interval=st.sampled_from([16, 64, 1024]),
    startup=st.integers(0, 20),
    replacement=st.sampled_from([60, 120, 600]),
    failures=st.lists(st.tuples(st.integers(1, 1500), st.integers(0, 2)), max_size=8),
)
def test_the_course_of_a_sweep_is_that_of_a_clock_that_ticks(
    lengths, nodes, slots, interval, startup, replacement, failures
):
    failures = sorted({(time, node) for time, node in failures if node < nodes})
    expected = course(
        lengths, nodes=nodes, slots=slots, interval=interval, startup=startup, replacement=replacement,
        failures=failures,
    )  # fmt: skip
    config = cluster(nodes=nodes, cores=slots, startup_seconds=startup, node_replacement_minutes=replacement / 60)
    found = simulate([job(length, checkpoint_interval=float(interval)) for length in lengths], config, failures)
    assert (found.seconds, found.failures, found.lost_seconds) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("needs", "at_a_time"), [({}, 6), ({"cores": 2}, 4), ({"memory": 2**29}, 2), ({"cores": 4}, 2)]
)
def test_as_many_runs_as_the_cores_and_the_memory_of_the_nodes_hold_train_at_a_time(needs, at_a_time):
    found = simulate([job(10, **needs)] * 6, cluster(nodes=2, cores=5, memory_gib=0.7))
    assert found.most_at_a_time == at_a_time
    assert found.seconds == pytest.approx(10 * ceil(6 / at_a_time))


@pytest.mark.parametrize(
    ("lengths", "startup"),
    [([5e5] * 60, 12.4), ([5e5] * 60, 29.9), ([1e6 + 0.37, *(0.001 + 0.00017 * n for n in range(50))], 0.0)],
)
def test_a_simulation_of_months_ends_although_the_clock_rounds(lengths, startup, monkeypatch):
    """Rounded to the clock, a remainder of a startup or of a run takes no time, and was repeated for ever."""
    steps = itertools.count()
    advance = simulation._Sweep.advance

    def limited(self, until):
        assert next(steps) < 10 * len(lengths)
        advance(self, until)

    monkeypatch.setattr(simulation._Sweep, "advance", limited)
    found = simulate([job(length / 1.0007) for length in lengths], cluster(startup_seconds=startup))
    assert found.seconds == pytest.approx(sum(lengths) / 1.0007 + len(lengths) * startup)


def test_a_small_run_starts_before_a_large_one_that_does_not_fit_yet():
    found = simulate([job(10, cores=2), job(10, cores=2), job(10)], cluster(cores=3))
    assert found.seconds == 20


def test_a_run_that_fits_on_no_node_is_an_error_that_names_the_settings():
    with pytest.raises(UsageError, match=r"needs 3 cores and 0.0 GiB .* cores = 2, memory_gib = 1"):
        simulate([job(1, cores=3)], cluster(cores=2))


def test_runs_that_share_a_gpu_are_slower_and_the_last_one_alone_is_not():
    """Two runs at 40 frames a second each until the shorter ends, then one at 100: 4 s + 1 s."""
    shared = cluster(cores=9, gpus=1, runs_per_gpu=2, frames_per_second=100, shared_frames_per_second=40)
    found = simulate([job(1.6), job(2.6)], shared)
    assert found.seconds == pytest.approx(4 + 1)
    assert found.gpu_seconds_in_use == pytest.approx(5)


def test_the_time_a_frame_takes_grows_linearly_with_the_runs_on_a_gpu():
    """Alone 1 s, four together 2.5 s: two together 1.5 s."""
    config = cluster(cores=9, gpus=2, runs_per_gpu=4, frames_per_second=10, shared_frames_per_second=4)
    for runs, seconds in ((1, 1.0), (2, 1.5), (3, 2.0), (4, 2.5)):
        assert simulate([job(1)] * runs, config).seconds == pytest.approx(seconds)


def test_without_a_speed_when_shared_the_runs_of_a_gpu_divide_it():
    assert simulate([job(1)] * 3, cluster(cores=3, gpus=1, runs_per_gpu=3)).seconds == pytest.approx(3)


def test_a_checkpoint_takes_the_time_that_the_storage_needs_for_the_state_and_the_new_part_of_the_replay():
    """60 s of training, then 10 + 60 * 0.5 + 2 = 42 MiB at 7 MiB a second: six seconds; ten times."""
    needs = {"checkpoint_interval": 60.0, "state": 10 * MIB, "replay": 90 * MIB, "replay_per_second": MIB / 2}
    found = simulate([job(600, **needs, replay_segment=2.0 * MIB)], cluster(storage_mib_per_second=7))
    assert found.seconds == pytest.approx(660)
    assert found.written == pytest.approx(420 * MIB)


def test_a_checkpoint_never_has_more_than_the_whole_replay_and_less_when_the_run_is_slower():
    one = job(1, checkpoint_interval=60.0, state=5.0, replay=100.0, replay_per_second=4.0)
    assert [one.checkpoint_bytes(slowdown) for slowdown in (1, 2.4, 4)] == [105, 105, 65]


def test_runs_wait_for_each_other_where_the_storage_is_always_busy():
    """Each of 8 runs trains for 60 s and writes for 15 s: a cycle is 8 * 15 s, half of it training."""
    needs = {"checkpoint_interval": 60.0, "state": 15.0 * MIB}
    found = simulate([job(600, **needs)] * 8, cluster(cores=8, storage_mib_per_second=1))
    assert found.seconds == pytest.approx(1200)
    assert found.written / found.seconds == pytest.approx(MIB), "all that it can"


def test_the_disk_holds_runs_under_way_and_what_is_left_of_finished_ones():
    found = simulate([job(10, disk=100.0, disk_after=7.0)] * 5, cluster(nodes=2))
    assert found.most_disk == pytest.approx(max(200, 200 + 14, 100 + 28))


def test_a_failure_in_the_middle_costs_what_was_not_saved_the_lock_and_the_way_back():
    """Lost 36 s after a checkpoint; the lock expires after 90 s, the checkpoint is read in 8 s, and 2 s to start."""
    config = cluster(nodes=2, startup_seconds=2.0, storage_mib_per_second=1, node_replacement_minutes=60)
    found = simulate([job(1000, replay=8.0 * MIB)], config, [(102.0, 0)])
    assert found.lost_seconds == pytest.approx(36)
    assert found.seconds == pytest.approx(2 + 1000 + 36 + 90 + 2 + 8)
    assert found.read == 8 * MIB


def standard_error(values):
    return stdev(values) / sqrt(len(values))


def test_random_failures_cost_as_much_as_renewal_theory_expects():
    """A part of length c with failures at rate r and downtime d takes (1/r + d) (exp(r c) - 1) on average."""
    config = cluster(node_failures_per_hour=6.0, node_replacement_minutes=5)
    rate, interval, downtime, parts = 6 / 3600, 512.0, 300.0, 4
    found = [
        simulate([job(parts * interval, checkpoint_interval=interval)], config, node_failures(config, seed))
        for seed in range(400)
    ]
    expected = parts * (1 / rate + downtime) * (exp(rate * interval) - 1)
    times = [one.seconds for one in found]
    assert abs(mean(times) - expected) < 4 * standard_error(times)


def test_failures_are_a_poisson_process_spread_evenly_over_the_nodes():
    config = cluster(nodes=4, node_failures_per_hour=0.5)
    found = list(itertools.takewhile(lambda one: one[0] < 3600 * 1000, node_failures(config, seed=3)))
    expected = 4 * 0.5 * 1000
    assert abs(len(found) - expected) < 4 * sqrt(expected)
    for node in range(4):
        assert abs(sum(one[1] == node for one in found) - expected / 4) < 4 * sqrt(expected / 4)
    assert found == list(itertools.islice(node_failures(config, seed=3), len(found)))
    assert list(node_failures(cluster(), seed=0)) == []


def test_a_sweep_that_fails_faster_than_it_saves_is_an_error(monkeypatch):
    monkeypatch.setattr(simulation, "MAX_FAILURES", 50)
    config = cluster(node_failures_per_hour=3600.0, node_replacement_minutes=0)
    with pytest.raises(UsageError, match="does not end within 50 failures of nodes; lower node_failures_per_hour"):
        simulate([job(10_000)], config, node_failures(config, seed=0))
