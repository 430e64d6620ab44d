"""``python -m bench.reliability``."""

from bench.reliability.command import command

if __name__ == "__main__":
    command(prog_name="python -m bench.reliability")
