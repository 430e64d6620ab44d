"""Regression suites as GNU Go and GoGui write them: text files of GTP commands and of the answers that pass.

A line is a GTP command. One that begins with a number is a test, if a line ``#? [PATTERN]`` follows it: the answer
must be matched by the pattern, a regular expression, or must not be if it begins with ``!``. Behind the bracket ``*``
says that the suite's author knew his program to fail, ``&`` that the answer is of no interest. Everything else that
begins with ``#`` is a comment. Commands without a number set positions up.

Source: the GNU Go program documentation, "Regression testing".
"""

import re
from dataclasses import dataclass, replace

TEST = re.compile(r"(\d{1,18})\s+(\S.*)")
EXPECTATION = re.compile(r"#\?\s*\[(?:(.*?)\]\s*+([*&]*+)\s*+(?:#.*)?|([^\]]*))", re.DOTALL)
"""Some of GNU Go's lack the closing bracket."""


@dataclass(frozen=True)
class Expectation:
    """Which answers pass."""

    pattern: str
    is_negated: bool
    may_fail: bool
    """the suite's author expected his program to fail"""

    @classmethod
    def parse(cls, text: str, marks: str) -> "Expectation":
        """Read what stands in the brackets, and the marks behind them.

        Raises:
            ValueError: no regular expression.
        """
        pattern = text.removeprefix("!")
        try:
            re.compile(pattern)
        except re.error as error:
            raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
        return cls(pattern, text.startswith("!"), "*" in marks)

    def passes(self, answer: str) -> bool:
        """Whether an answer is one of those wanted, in whatever case."""
        return bool(re.fullmatch(self.pattern, answer, re.IGNORECASE | re.DOTALL)) != self.is_negated

    def __str__(self) -> str:
        return f"{'!' if self.is_negated else ''}{self.pattern}"


@dataclass(frozen=True)
class Step:
    """One command of a suite."""

    line: int
    """in the file, from 1"""
    number: int
    """of a test; 0 = it only sets something up"""
    command: str
    expected: Expectation | None
    """None for what is no test"""

    @property
    def name(self) -> str:
        """The command's name."""
        return self.command.split()[0]


def parse_suite(text: str) -> list[Step]:
    """The commands of a suite, in order.

    Raises:
        ValueError: naming the line: an expectation without a test, or one that cannot be read.
    """
    steps: list[Step] = []
    for count, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if line.startswith("#?"):
            try:
                steps[-1:] = _expecting(steps[-1] if steps else None, line)
            except ValueError as error:
                raise ValueError(f"line {count}: {error}") from error
            continue
        command = line.partition("#")[0].strip()
        if command:
            found = TEST.fullmatch(command)
            steps.append(Step(count, int(found[1]), found[2], None) if found else Step(count, 0, command, None))
    return steps


def _expecting(step: Step | None, line: str) -> list[Step]:
    """The step before an expectation, as a test; as it was if the answer does not matter."""
    found = EXPECTATION.fullmatch(line)
    if found is None:
        raise ValueError(f"{line!r} is no expectation, which looks like #? [PATTERN]")
    if step is None or step.number == 0 or step.expected is not None:
        raise ValueError("an expectation without a test before it")
    closed, marks, unclosed = found.groups()
    if "&" in (marks or ""):
        return [step]
    return [replace(step, expected=Expectation.parse(unclosed if closed is None else closed, marks or ""))]
