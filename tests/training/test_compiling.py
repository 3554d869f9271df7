"""Kernels are compiled before the clock of a run starts, once, and that is reported."""

import json
import subprocess
import sys

import pytest
from numba.core import event

from bootdqn.config.settings import from_flat
from bootdqn.config.train import resolve
from bootdqn.training import compiling
from bootdqn.training.compiling import COMPILING, compile_kernels
from bootdqn.training.loop import make_components
from bootdqn.training.run import train_run

SMALL = {
    "environment": "deep-sea",
    "update_every": 1,
    "size": 3,
    "max_episodes": 20,
    "num_heads": 2,
    "learning_starts": 8,
}
BY_NUMBERS = {"environment": "gym", "env_id": "CartPole-v1", "num_heads": 2, "learning_starts": 8}
IMAGES = {"environment": "minatar", "game": "breakout", "num_heads": 2, "learning_starts": 8, "total_steps": 60}
NOTHING_MORE_IS_COMPILED = """
import json, pathlib, sys, tempfile
from numba.core.dispatcher import Dispatcher
from bootdqn.agent import discrete_kernel, shared_torso_kernel, torso_passes
from bootdqn.replay import prioritized as sum_tree
from bootdqn.training.compiling import compile_kernels
from bootdqn.config.settings import from_flat
from bootdqn.config.train import resolve
from bootdqn.training.loop import make_components
from bootdqn.training.run import train_run

def known():
    return {name: list(one.signatures) for module in (discrete_kernel, shared_torso_kernel, torso_passes, sum_tree)
            for name, one in vars(module).items() if isinstance(one, Dispatcher)}

for number, settings in enumerate(json.loads(sys.argv[1])):
    config = resolve(from_flat(settings))
    compile_kernels(config, make_components(config), print)
    ready = known()
    assert any(ready.values())
    train_run(config, pathlib.Path(sys.argv[2]) / str(number))
    assert known() == ready, settings
"""


def test_a_run_calls_only_kernels_that_were_compiled_before(tmp_path):
    """In a process that has called nothing yet, one setting after the other that changes what is called."""
    changes = [
        {},
        {"num_envs": 2, "prior_scale": 3.0, "double_q": False, "loss": "huber", "target_rate": 0.5},
        {"n_step": 3},
        {"replay": "prioritized", "beta_steps": 10},
        {"replay": "prioritized", "n_step": 3, "engine": "autograd"},
    ]
    settings = [SMALL | one for one in changes] + [BY_NUMBERS | {"env_id": "FrozenLake-v1", "total_steps": 60}]
    settings += [IMAGES, IMAGES | changes[1], BY_NUMBERS | {"ensemble": "shared", "total_steps": 60}]
    code = [sys.executable, "-c", NOTHING_MORE_IS_COMPILED, json.dumps(settings), str(tmp_path)]
    done = subprocess.run(code, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def compile_twice(*_, **__):
    for _ in range(2):
        with event.trigger_event("numba:compile", data={}):
            pass


@pytest.mark.parametrize(
    ("settings", "needed"),
    [(SMALL, True), (SMALL | {"engine": "autograd"}, False), (BY_NUMBERS, False), (IMAGES, True)]
    + [(one | {"replay": "prioritized"}, True) for one in (SMALL, BY_NUMBERS)],
)
def test_compiling_is_reported_once_and_only_where_a_kernel_is_called(settings, needed, monkeypatch):
    monkeypatch.setattr(compiling, "_train_a_little", compile_twice)
    monkeypatch.setattr(compiling, "_learn_a_little", compile_twice)
    config, messages = resolve(from_flat(settings)), []
    compile_kernels(config, make_components(config), messages.append)
    assert messages == [COMPILING] * needed


def test_kernels_in_the_cache_are_not_reported():
    config, messages = resolve(from_flat(SMALL)), []
    for _ in range(2):
        messages.clear()
        compile_kernels(config, make_components(config), messages.append)
    assert messages == []


def test_compiling_does_not_count_as_time_of_the_run(tmp_path, monkeypatch):
    now = [1000.0]

    def compile_for_an_hour(*_):
        now[0] += 3600

    monkeypatch.setattr("bootdqn.training.metrics.time.monotonic", lambda: now[0])
    monkeypatch.setattr("bootdqn.training.run.compile_kernels", compile_for_an_hour)
    assert train_run(resolve(from_flat(SMALL)), tmp_path / "run").summary["seconds"] == 0.0
