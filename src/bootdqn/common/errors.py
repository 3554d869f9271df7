"""Errors that are the user's to mend."""


class UsageError(Exception):
    """What was asked for cannot be done; the message says why and what to do instead. The command line exits with 2."""
