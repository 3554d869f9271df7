"""Exploration by an ensemble: pure functions of Q-values (..., K, A), and the strategies built on them."""
