"""The environments: DeepSea, and everything that makes one from a configuration."""
