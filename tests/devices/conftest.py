"""Tests that need another backend of PyTorch, which `make device-test` installs: elsewhere they are not collected."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch_xla") else ["test_*.py"]
