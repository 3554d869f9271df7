"""The configuration of a run: every flag, its default and its valid range."""
