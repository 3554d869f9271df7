"""Ratios against peers, side by side in one run: `python -m benchmarks.minatar`, and `make bench` for all."""
