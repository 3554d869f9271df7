"""One run: its configuration, the loop, and what consumes the loop's stream of steps."""
