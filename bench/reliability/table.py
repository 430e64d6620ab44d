"""The table of a campaign: one row a part, for people at a terminal, as markdown for the docs, or as JSON lines."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console

from bench.reliability.folder import Record
from bench.reliability.part import Case, Part
from bench.speed.figures import print_figure, rounded
from gtp.cli.terminal import new_table, say

SHOWN_FAULTS = 20
"""Faults that are listed below the table; all are in the folder"""


@dataclass(frozen=True)
class Row:
    """A part and what came of it."""

    part: Part
    cases: Sequence[Case]
    records: Sequence[Record]
    missing: str = ""
    """why it cannot be run here"""

    @property
    def wanted_amount(self) -> int:
        """In the part's unit."""
        return sum(case.amount for case in self.cases)

    @property
    def amount(self) -> int:
        """What was done of it."""
        return sum(record.amount for record in self.records)

    @property
    def faults(self) -> list[tuple[str, str]]:
        """Cases and what was wrong."""
        return [(record.case, fault) for record in self.records for fault in record.faults]

    @property
    def figures(self) -> dict[str, float]:
        """The part's figures over all cases."""
        found = {}
        for name, combine in self.part.figures.items():
            values = [record.figures[name] for record in self.records if name in record.figures]
            if values:
                found[name] = combine(values)
        return found

    @property
    def holds(self) -> bool:
        """Whether all cases have been run, without a fault."""
        return len(self.records) == len(self.cases) and not self.faults

    def found(self) -> str:
        """What was done and what came of it, in words."""
        if not self.records:
            return f"not run: {self.missing}" if self.missing else "not run yet"
        share = "" if self.amount == self.wanted_amount else f" of {self.wanted_amount:,}"
        hours = sum(record.seconds for record in self.records) / 3600
        parts = [f"{self.amount:,}{share} {self.part.unit}", f"{len(self.faults)} fault{'s' * (len(self.faults) != 1)}"]
        parts += [_in_words(name, value) for name, value in self.figures.items()]
        return "; ".join([*parts, f"{hours:.2f} h"])


def _in_words(figure: str, value: float) -> str:
    """A figure, its unit behind it: "slowest file, s" and 3.0 are "slowest file 3 s"."""
    words, _, unit = figure.rpartition(", ")
    number = f"{rounded(value):,}".removesuffix(".0")
    return f"{words} {number} {unit}" if words else f"{unit} {number}"


def show(console: Console, rows: Sequence[Row]) -> None:
    """The table, and the faults below it."""
    table = new_table("part", "wanted", "found", right=(), folds=True)
    for row in rows:
        table.add_row(row.part.title, row.part.wanted, row.found())
    console.print(table)
    faults = [(row.part.name, case, fault) for row in rows for case, fault in row.faults]
    for part, case, fault in faults[:SHOWN_FAULTS]:
        say(console, f"{part} {case}: {fault}")
    if len(faults) > SHOWN_FAULTS:
        say(console, f"and {len(faults) - SHOWN_FAULTS} more faults")


def as_markdown(rows: Sequence[Row]) -> str:
    """The table as the docs have it."""
    lines = ["| part | wanted | found |", "|---|---|---|"]
    return "\n".join([*lines, *(f"| {row.part.title} | {row.part.wanted} | {row.found()} |" for row in rows)])


def print_figures(rows: Sequence[Row]) -> None:
    """A JSON line a figure: what was done, faults, and the part's own figures."""
    for row in rows:
        if not row.records:
            continue
        name = f"reliability/{row.part.name}"
        print_figure(name, [row.amount], row.part.unit)
        print_figure(f"{name}/faults", [len(row.faults)], "faults")
        for figure, value in row.figures.items():
            words, _, unit = figure.rpartition(", ")
            print_figure(f"{name}/{words or unit}", [value], unit if words else "")
