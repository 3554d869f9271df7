"""The environments: DeepSea, TwoPaths, and everything that makes one from a configuration."""
