"""``python -m bench.reliability``."""

import signal

from bench.reliability.command import command

if __name__ == "__main__":
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    command(prog_name="python -m bench.reliability")
