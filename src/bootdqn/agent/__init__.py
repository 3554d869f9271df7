"""The agent: networks, losses and learners, and the actor. It sees batches and specs, nothing else."""
