"""The agent: how it learns (losses, learners) and how it acts (actor). It sees batches and specs, nothing else."""
