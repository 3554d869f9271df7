"""The commands: each a dataclass whose fields are its flags, and what it does.

Nothing here imports PyTorch before there is work to do, so that `--help` and mistakes answer at once.
"""
