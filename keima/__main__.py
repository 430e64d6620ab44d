"""``python -m keima``: the command `keima`."""

from gtp.cli import main

main()
