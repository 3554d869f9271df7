"""`python -m bootdqn` is `bootdqn`."""

from bootdqn.cli import main

if __name__ == "__main__":
    main()
