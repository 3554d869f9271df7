"""The files for Slurm and Kubernetes, as far as they can be checked without either."""

import os
import re
import shlex
import signal
import socket
import subprocess
import time
from contextlib import closing, suppress

import pytest
import yaml

import bootdqn
from bootdqn.cli.main import parse
from bootdqn.reports.paper import HEADS_FRAMES, RUNTIME_MINUTES
from bootdqn.sweeps.cluster_file import load_cluster
from bootdqn.sweeps.sweep_file import load_sweep
from reference.documents import ROOT
from reproduction.studies import measured_speed

FILES = ROOT / "examples/cluster"
STUBS = {
    "scontrol": '[ "$1" != show ] || printf "%s\\n" node-1 node-2 node-3',
    "srun": 'while [ "${1#--}" != "$1" ]; do shift; done; exec "$@"',
    "hostname": 'echo "127.0.0.1 172.16.0.9"',
    "ray": 'sleep "$RAY_SECONDS"',
    "bootdqn": 'trap "exit 143" TERM; until [ "$(grep -c "^ray " calls)" -ge "$RAY_CALLS" ]; do sleep 0.1; done; '
    'touch started; [ "$SWEEP_CODE" = wait ] || exit "$SWEEP_CODE"; '
    "while :; do sleep 0.1; done",
}
"""Commands of Slurm, Ray and this package that write their arguments to a file, and do the least that is needed."""
JOB = {
    "SLURM_JOB_ID": "77",
    "SLURM_JOB_NODELIST": "node-[1-3]",
    "SLURM_JOB_NUM_NODES": "3",
    "SLURM_CPUS_PER_TASK": "32",
}


class Slurm:
    """Runs a script as Slurm would, with stubs of the commands that it calls."""

    def __init__(self, directory):
        self._directory, self._calls, self._jobs = directory, directory / "calls", []
        for name, body in STUBS.items():
            path = directory / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(f'#!/bin/bash\necho {name} "$@" >> "{self._calls}"\n{body}\n')
            path.chmod(0o755)

    def start(self, script, *arguments, **variables):
        path = f"{self._directory / 'bin'}{os.pathsep}{os.environ['PATH']}"
        environment = (
            os.environ | {"PATH": path, "RAY_SECONDS": "0", "RAY_CALLS": "0", "SWEEP_CODE": "0"} | JOB | variables
        )
        command = ["bash", FILES / script, *arguments]
        job = subprocess.Popen(command, cwd=self._directory, env=environment, start_new_session=True)
        self._jobs.append(job)
        return job

    def stop(self):
        """Kill whatever the jobs have left behind, as Slurm does."""
        for job in self._jobs:
            with suppress(ProcessLookupError):
                os.killpg(job.pid, signal.SIGKILL)

    def run(self, script, *arguments, **variables):
        return self.start(script, *arguments, **variables).wait(60)

    def calls(self, name):
        """Return the arguments of all calls of a command."""
        lines = self._calls.read_text().splitlines()
        return [shlex.split(line)[1:] for line in lines if line.split()[0] == name]


@pytest.fixture
def slurm(tmp_path):
    slurm = Slurm(tmp_path)
    yield slurm
    slurm.stop()


@pytest.fixture
def port():
    """A port on which something listens, as a Ray head would."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server.getsockname()[1]


@pytest.fixture
def ray_script(tmp_path, port):
    """The script, with the port of this machine's fixture instead of Ray's."""
    text = (FILES / "slurm-ray.sh").read_text()
    assert text.count("port=6379\n") == 1
    script = tmp_path / "slurm-ray.sh"
    script.write_text(text.replace("port=6379\n", f"port={port}\n"))
    return script


def directives(script):
    """Return the options of a script's #SBATCH lines."""
    lines = re.findall(r"^#SBATCH --(\S+)$", (FILES / script).read_text(), re.MULTILINE)
    return dict(line.partition("=")[::2] for line in lines)


@pytest.mark.parametrize("path", sorted(FILES.glob("*.sh")), ids=lambda path: path.name)
def test_scripts_are_valid_and_their_options_come_before_the_first_command(path):
    subprocess.run(["bash", "-n", path], check=True)
    before, _, after = path.read_text().partition("set -euo pipefail")
    assert "#SBATCH" not in after, "Slurm would ignore it"
    assert all(line.startswith("#") for line in before.splitlines() if line)


def test_the_array_has_a_task_for_each_run_of_the_sweep(slurm):
    first, last = map(int, directives("slurm-array.sh")["array"].split("-"))
    names = []
    for task in (first, last, *range(first + 1, last, 7)):
        assert slurm.run("slurm-array.sh", "/out", SLURM_ARRAY_TASK_ID=str(task), SLURM_ARRAY_JOB_ID="5") == 0
    for call in slurm.calls("bootdqn"):
        command = parse(call)
        assert str(command.out) == "/out"
        (run,) = load_sweep(command.name).with_overrides(command.overrides).runs()
        assert (run.config.run.device, run.config.run.threads) == (
            "cuda",
            int(directives("slurm-array.sh")["cpus-per-task"]),
        )
        names.append(run.name)
    planned = {run.name for run in load_sweep("paper-atari").runs()}
    assert last - first + 1 == len(planned)
    assert len(names) == len(set(names))
    assert set(names) <= planned


@pytest.mark.parametrize(("code", "requeued"), [("143", [["requeue", "5_3"]]), ("1", []), ("0", [])])
def test_a_task_that_ran_out_of_time_queues_itself_again(slurm, code, requeued):
    task = {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_JOB_ID": "5"}
    assert slurm.run("slurm-array.sh", SWEEP_CODE=code, **task) == int(code)
    assert slurm.calls("scontrol") == requeued


def test_the_job_starts_ray_on_all_nodes_and_the_sweep_on_their_head(slurm, ray_script, port):
    assert slurm.run(ray_script, "paper-deepsea", "/out", SLURM_GPUS_ON_NODE="4", RAY_CALLS="2") == 0
    head, others = sorted(slurm.calls("ray"), key=lambda call: "--head" not in call)
    address = f"127.0.0.1:{port}"
    assert {"start", "--block", "--head", "--node-ip-address=127.0.0.1", f"--port={port}"} <= set(head)
    assert {"start", "--block", f"--address={address}"} <= set(others)
    assert all({"--num-cpus=32", "--num-gpus=4"} <= set(call) for call in (head, others))
    started = sorted(call for call in slurm.calls("srun") if "ray" in call)
    assert started[0][:4] == ["--nodes=1", "--ntasks=1", "--overlap", "--nodelist=node-1"]
    assert started[1][:4] == ["--nodes=2", "--ntasks=2", "--overlap", "--exclude=node-1"]
    (call,) = slurm.calls("bootdqn")
    command = parse(call)
    assert (command.name, str(command.out), command.ray, command.gpus_per_run) == (
        "paper-deepsea",
        "/out",
        address,
        1.0,
    )
    assert [one for one in slurm.calls("scontrol") if one[0] == "requeue"] == []


def test_a_job_that_runs_out_of_time_lets_the_sweep_save_its_runs_and_queues_itself_again(slurm, ray_script, tmp_path):
    job = slurm.start(ray_script, SWEEP_CODE="wait", RAY_SECONDS="600")
    while not (tmp_path / "started").exists():
        assert job.poll() is None
        time.sleep(0.05)
    job.send_signal(signal.SIGTERM)
    assert job.wait(60) == 143
    assert slurm.calls("scontrol")[-1] == ["requeue", "77"]


def test_the_job_asks_for_the_nodes_that_the_simulation_has():
    asked, cluster = directives("slurm-ray.sh"), load_cluster(FILES / "gpu-32.toml")
    assert int(asked["nodes"]) == cluster.nodes
    assert (int(asked["cpus-per-task"]), int(asked["gpus-per-node"])) == (cluster.cores, cluster.gpus)
    assert asked["mem"] == f"{cluster.memory_gib:g}G"


def containers_of(group):
    """Return the only container of a group of nodes and the names of its volumes."""
    pod = group["template"]["spec"]
    (container,) = pod["containers"]
    return container, [volume["name"] for volume in pod["volumes"]]


def test_the_manifest_is_a_ray_job_with_the_nodes_that_the_simulation_has():
    job = yaml.safe_load((FILES / "kuberay.yaml").read_text())
    assert (job["apiVersion"], job["kind"]) == ("ray.io/v1", "RayJob")
    assert job["spec"].keys() == {
        "entrypoint", "shutdownAfterJobFinishes", "ttlSecondsAfterFinished", "backoffLimit", "rayClusterSpec",
    }  # fmt: skip
    spec, cluster = job["spec"]["rayClusterSpec"], load_cluster(FILES / "gpu-32.toml")
    assert spec.keys() == {"rayVersion", "headGroupSpec", "workerGroupSpecs"}
    assert f"ray=={spec['rayVersion']}\n" in (ROOT / "constraints.txt").read_text()
    assert f"ray:{spec['rayVersion']}-py311-gpu" in (FILES / "Dockerfile").read_text()
    head, (workers,) = spec["headGroupSpec"], spec["workerGroupSpecs"]
    assert head.keys() == {"rayStartParams", "template"}
    assert workers.keys() == {"groupName", "replicas", "minReplicas", "maxReplicas", "rayStartParams", "template"}
    assert workers["minReplicas"] == workers["replicas"] == workers["maxReplicas"] == cluster.nodes
    assert all(isinstance(value, str) for group in (head, workers) for value in group["rayStartParams"].values())
    asked = {"cpu": f"{cluster.cores}", "memory": f"{cluster.memory_gib:g}Gi", "nvidia.com/gpu": f"{cluster.gpus}"}
    assert containers_of(workers)[0]["resources"] == {"requests": asked, "limits": asked}
    command = parse(shlex.split(job["spec"]["entrypoint"])[1:])
    assert load_sweep(command.name).with_overrides(command.overrides).runs()
    for group in (head, workers):
        container, volumes = containers_of(group)
        assert container["image"] == f"bootdqn:{bootdqn.__version__}"
        (mount,) = container["volumeMounts"]
        assert mount["name"] in volumes
        assert command.out.is_relative_to(mount["mountPath"])


def test_the_assumed_speeds_are_the_paper_s_and_ours():
    papers = HEADS_FRAMES / (60 * RUNTIME_MINUTES[10])
    for path in FILES.glob("gpu-*.toml"):
        assert load_cluster(path).frames_per_second == round(papers), path.name
    assert load_cluster(FILES / "cpu-512.toml").frames_per_second == round(measured_speed("speed")["by_heads"]["10"])
