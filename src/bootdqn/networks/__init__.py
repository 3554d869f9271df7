"""Ensembles of Q-networks whose heads are computed side by side, in one call a layer."""
