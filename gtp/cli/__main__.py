"""``python -m gtp.cli``: the command `keima` where it is not installed."""

from gtp.cli import main

main()
