"""Leaves with no knowledge of learning: specs, random streams, files, the run folder's schema, names and colours."""
