"""The replay buffer: storage that keeps each observation once, and uniform or prioritized sampling."""
