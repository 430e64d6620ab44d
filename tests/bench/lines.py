"""What the benches of speed print, as tests read it."""

import json

from click import Command
from click.testing import CliRunner


def figures(command: Command, *words: object) -> dict[str, dict]:
    """The figures of a bench by name, in order; each is a line of its own and has a name, a value and a unit."""
    done = CliRunner().invoke(command, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    found = {line["name"]: line for line in lines}
    assert len(found) == len(lines) and all(list(line) == ["name", "value", "unit"] for line in lines)
    return found


def refusal(command: Command, *words: object) -> str:
    """The one line by which a command refuses its options, before it has printed anything."""
    done = CliRunner().invoke(command, [str(word) for word in words])
    assert done.exit_code != 0 and done.stdout == ""
    (line,) = (line for line in done.stderr.splitlines() if line.startswith("Error: "))
    return line
