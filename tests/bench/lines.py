"""Figures that speed benchmarks print, parsed for tests."""

import json

from click import Command
from click.testing import CliRunner


def figures(command: Command, *words: object) -> dict[str, dict]:
    """The figures of a benchmark by name, in order; checks that each line has name, value and unit."""
    done = CliRunner().invoke(command, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = {line["name"]: line for line in lines}
    assert len(found) == len(lines) and all(list(line) == ["name", "value", "unit"] for line in lines)
    return found


def refusal(command: Command, *words: object) -> str:
    """The one line of a command's usage error; checks that it has printed nothing else."""
    done = CliRunner().invoke(command, [str(word) for word in words])
    assert done.exit_code != 0 and done.stdout == ""
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("Error: "))
    return line
