"""A Ray cluster on this machine, whose nodes can be killed, or see a directory as read-only."""

import ctypes
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

HEAD = {"num_cpus": 1, "include_dashboard": False}
CLONE_NEWNS = 0x00020000


class RayCluster:
    """A head and a second node, of one CPU each. Drivers connect to the head."""

    def __init__(self):
        from ray.cluster_utils import Cluster

        self._cluster = Cluster(initialize_head=True, head_node_args=HEAD)
        self._cluster._shutdown_at_exit = False  # a signal handler, which no thread but the main one can set
        self.add_node()

    @property
    def address(self):
        return self._cluster.address

    def add_node(self):
        """Start the second node, where the system allows it with mounts of its own."""
        with ThreadPoolExecutor(1) as thread:  # its mounts are inherited by what is started from it
            self._own_mounts = thread.submit(unshare_mounts).result()
            self._node = thread.submit(self._cluster.add_node, num_cpus=1).result()

    def kill_node(self):
        """Kill the second node without grace."""
        self._cluster.remove_node(self._node, allow_graceful=False)

    def restart(self):
        """Kill both nodes without grace and start others, with the head at the same address."""
        port = int(self.address.rpartition(":")[2])
        self._cluster.remove_node(self._cluster.head_node, allow_graceful=False)
        self.kill_node()
        self._cluster.add_node(**HEAD, gcs_server_port=port)
        self.add_node()

    def shutdown(self):
        self._cluster.shutdown()

    def make_read_only(self, path):
        """Let the second node see the directory `path` as read-only."""
        self._change_mounts("mount", "--bind", path, path)
        self._change_mounts("mount", "-o", "remount,bind,ro", path)

    def make_writable(self, path):
        """Undo `make_read_only`."""
        self._change_mounts("umount", path)

    def _change_mounts(self, *command):
        if not self._own_mounts:
            pytest.skip("this system does not let the tests have mounts of their own")
        raylet = self._node.all_processes["raylet"][0].process.pid
        subprocess.run(["nsenter", "--target", str(raylet), "--mount", *command], check=True)


def unshare_mounts():
    """Give this thread mounts of its own, and return whether the system allowed that."""
    if ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return False
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    return True
