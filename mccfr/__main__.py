"""`python -m mccfr`: the program without its installed script."""

from mccfr.cli import main

if __name__ == "__main__":
    main()
