"""How property tests run: the same examples for everybody, and no clock on a shared machine."""

from hypothesis import settings

settings.register_profile("bootdqn", deadline=None, derandomize=True, max_examples=100, print_blob=False)
settings.load_profile("bootdqn")
