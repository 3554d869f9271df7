"""Foundations that know nothing of learning: fields, files, random streams, errors and text."""
