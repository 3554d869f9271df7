"""Ensembles of Q-networks whose heads are computed side by side, without a loop over heads."""
