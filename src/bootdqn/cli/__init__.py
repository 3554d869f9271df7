"""The command line. Each command is a dataclass whose fields are its flags, with a method that executes it.

PyTorch is imported when a command is executed, so that `--help` and usage errors answer at once.
"""
