"""The paper's Atari study on the clusters in `examples/cluster`, by simulation."""

from bootdqn.common.text import format_bytes, format_duration
from bootdqn.config.train import SavingConfig
from bootdqn.reports.tables import Table
from bootdqn.sweeps.cluster_cost import jobs_of, median_and_percentiles, simulate_failures
from bootdqn.sweeps.cluster_file import load_cluster
from bootdqn.sweeps.cost import in_scheduling_order
from bootdqn.sweeps.simulate import simulate
from bootdqn.sweeps.sweep_file import load_sweep
from reproduction.studies import ROOT

CLUSTERS = {
    "gpu-1": "1 GPU",
    "gpu-4": "4 GPUs",
    "gpu-32": "32 GPUs",
    "gpu-32-shared": "32 GPUs, 3 runs on each",
    "cpu-512": "512 cores",
}
"""Files and their names in the table."""
COLUMNS = ("cluster", "runs at a time", "wall time", "with failures", "GPU or core hours", "storage", "checkpoints")


def clusters_table(study: str) -> str:
    """Return the simulated cost of a sweep on each cluster; with failures, the median and the range of 90 %."""
    runs = in_scheduling_order(load_sweep(study).runs())
    rows = []
    for stem, name in CLUSTERS.items():
        cluster = load_cluster(ROOT / f"examples/cluster/{stem}.toml")
        jobs = jobs_of(runs, cluster, SavingConfig())
        without_failures, failing = simulate(jobs, cluster), simulate_failures(jobs, cluster)
        hours = without_failures.seconds / 3600 * cluster.nodes * (cluster.gpus or cluster.cores)
        rows.append((
            f"[{name}](../examples/cluster/{stem}.toml)",
            str(without_failures.most_at_a_time),
            format_duration(without_failures.seconds),
            median_and_percentiles([one.seconds for one in failing], format_duration),
            f"{hours:,.0f}",
            format_bytes(without_failures.most_disk),
            format_bytes(without_failures.written),
        ))  # fmt: skip
    return Table("", "", COLUMNS, rows, text_columns=("cluster",)).to_markdown()
