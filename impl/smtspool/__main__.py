"""``python -m smtspool`` is the command ``smtspool``."""

from smtspool.cli import main

main()
