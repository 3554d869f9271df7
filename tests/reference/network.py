"""Hosts on this machine: each has a network address, a name, a boot id and a /tmp/ray of its own, and shares the disk.

A router stands between two of them. When it stops forwarding, packets vanish silently, as where a switch fails.
"""

import os
import subprocess
import sys
import tempfile
import uuid
from contextlib import suppress
from pathlib import Path

import pytest

HEAD_PORT = 6379
RAY = Path(sys.executable).with_name("ray")
START = """
mount --make-rprivate /
mkdir -p /tmp/ray
mount --bind "$1" /tmp/ray
mount --bind "$2" /proc/sys/kernel/random/boot_id
hostname "$3"
shift 3
exec "$@"
"""


class Host:
    """A Ray node of one CPU, in namespaces of its own."""

    def __init__(self, namespace, name, address, start_options):
        self.address, self._namespace = address, namespace
        self._directory = tempfile.TemporaryDirectory(prefix=name)
        files = Path(self._directory.name)
        (files / "ray").mkdir()
        (files / "boot_id").write_text(f"{uuid.uuid4()}\n")
        isolated = ["ip", "netns", "exec", namespace, "unshare", "--mount", "--uts", "sh", "-ec", START, "sh"]
        ray = [RAY, "start", "--block", "--num-cpus=1", "--disable-usage-stats"]
        self._log = (files / "log").open("w")
        self._process = subprocess.Popen(
            [*isolated, files / "ray", files / "boot_id", name, *ray, f"--node-ip-address={address}", *start_options],
            stdout=self._log, stderr=self._log,
        )  # fmt: skip

    def popen(self, command):
        """Start a process on this host, in its namespaces."""
        namespaces = ["nsenter", "--target", str(self._process.pid), "--net", "--mount", "--uts"]
        here = f"--wd={Path.cwd()}"
        return subprocess.Popen(
            [*namespaces, here, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    @property
    def log(self):
        """The output of Ray on this host."""
        return Path(self._log.name).read_text()

    def titles(self):
        """Return the titles of the processes on this host; a Ray worker's is the name of its task."""
        found = subprocess.run(["ip", "netns", "pids", self._namespace], check=True, capture_output=True, text=True)
        titles = []
        for process in found.stdout.split():
            with suppress(OSError):
                titles.append(Path("/proc", process, "cmdline").read_text().partition("\0")[0].strip())
        return titles

    def has_started(self):
        """Return whether Ray runs there."""
        assert self._process.poll() is None, self.log
        return "Ray runtime started" in self.log

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Stop the node and all of its processes."""
        self._process.terminate()
        self._process.wait(60)
        self._log.close()
        self._directory.cleanup()


class Network:
    """Two namespaces, with a third between them that forwards packets until it is disconnected."""

    def __init__(self):
        mark = f"{os.getpid():x}"
        self.names = [f"bd{mark}{letter}" for letter in "abr"]
        self.addresses = ["10.231.1.2", "10.231.2.2"]
        self.a, self.b, self._router = self.names
        try:
            self._create()
        except (OSError, subprocess.CalledProcessError) as error:
            self.remove()
            pytest.skip(f"this system does not allow network namespaces: {error}")

    def _create(self):
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for name, address in zip((self.a, self.b), self.addresses, strict=True):
            gateway = f"{address.rpartition('.')[0]}.1"
            run("ip", "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", name, "netns", self._router)
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", self._router, "addr", "add", f"{gateway}/24", "dev", name)
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", self._router, "link", "set", name, "up")
            run("ip", "-n", name, "route", "add", "default", "via", gateway)
        self.connect()

    def connect(self):
        """Forward packets between the two namespaces."""
        self._forward(1)

    def disconnect(self):
        """Drop all packets between the two namespaces."""
        self._forward(0)

    def _forward(self, switch):
        run("ip", "netns", "exec", self._router, "sh", "-c", f"echo {switch} > /proc/sys/net/ipv4/ip_forward")

    def remove(self):
        for name in self.names:
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def run(*command):
    subprocess.run(command, check=True, capture_output=True)
