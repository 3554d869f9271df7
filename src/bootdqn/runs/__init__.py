"""The run directory: its files, its status, checkpoints, lock and provenance."""
