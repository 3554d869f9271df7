"""What was seen: storage that keeps each observation once, and sampling from it."""
