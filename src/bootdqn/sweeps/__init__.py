"""Experiments as data, and what runs many runs."""
