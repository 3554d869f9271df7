"""Sweeps: many runs from one definition, on this machine or on a Ray cluster."""
