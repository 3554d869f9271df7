"""The reproduction of the paper: sweep definitions, committed results and the scripts that turn them into docs."""
