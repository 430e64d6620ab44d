"""The parts of the reliability campaign: what a case is, what comes of it, and the registry.

To add a part, write one module in this folder that ends with a constant ``PART``, and enter its name in ``NAMES``
below, in the order of the table. Besides these, its row in ``docs/reliability.md`` (``--report --markdown`` prints it)
and a test in ``tests/bench``. For example
``bench/reliability/counts.py``::

    def _count(size: int, folder: Path) -> Outcome:
        found = legal_positions(size)
        faults = [] if found == KNOWN[size] else [f"{size}x{size}: {found} legal positions, expected {KNOWN[size]}"]
        return Outcome(faults, {"slowest count, s": ...})

    def _cases(campaign: Campaign) -> Iterator[Case]:
        for size in (2, 3) if campaign.quick else (2, 3, 4):
            yield Case(f"{size}x{size}", partial(_count, size), amount=KNOWN[size])

    PART = Part(
        __name__,                                        # its last word is the part's name
        title="Legal positions on 2x2, 3x3 and 4x4",     # row of the table
        unit="positions",                                # what amounts count
        wanted="57; 12,675; 24,318,165",                 # what was wanted of them
        cases=_cases,
        figures={"slowest count, s": max},               # figures of outcomes, and how those of all cases combine
    )

What a part may rely on, and must keep to:

* Every case has a name of its own in its part, the same in every run of the same campaign: finished cases are not run
  again. Whatever is random follows from the case (seed = its number), never from the cases before it.
* Each case runs in the main thread of a worker process, in an empty folder of its own that is removed afterwards. With
  ``--jobs N`` N workers share a part's cases; ``alone=True`` forbids that where time or memory is measured.
  ``busy`` processes beside them make the machine one that people use.
* All faults of a case are listed, one text each, what was expected and what came; a case does not stop at the first
  where it can go on. An exception is a fault too, so is the worker's death, so is a case that takes longer than
  ``limit_s``.
* Ctrl-C is a ``KeyboardInterrupt`` in the case: end child processes in ``finally`` or ``with``. The death of the
  campaign itself, even by SIGKILL, arrives as the same ``KeyboardInterrupt``.
* The amounts of all cases are the wanted count. A case should take seconds to a few minutes: the one that runs is
  what a kill loses. With ``campaign.quick`` the cases of a part take about half a minute in all on two cores.
* ``missing`` says in a few words what a machine lacks to run the part (a program, reference material), or nothing.
* Standard output of a worker is led to standard error; nothing needs to be printed.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

NAMES: tuple[str, ...] = (
    "legality",
    "superko",
    "counts",
    "damage",
    "fuzz",
    "fuzz_json",
    "clocked",
    "evaluator",
    "kills",
    "actors",
    "memory",
)  # fmt: skip
"""Names of the parts, each that of its module in this folder, in the order of the table"""


@dataclass(frozen=True)
class Campaign:
    """What all parts are told; a folder holds one campaign, and these may not change in it."""

    quick: bool
    """the short form"""
    games: Path | None
    """a shard of real games, or a folder of SGF files"""
    weights: str
    """the network to play with, as ``keima gtp --weights`` takes it"""


@dataclass(frozen=True)
class Outcome:
    """What came of a case."""

    faults: list[str] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    """by the names in the part's ``figures``"""
    amount: int | None = None
    """what was really done, in the part's unit; None = all of it"""


@dataclass(frozen=True)
class Case:
    """One piece of a part, run as a whole or not at all."""

    name: str
    run: Callable[[Path], Outcome]
    """called with an empty folder"""
    amount: int = 1
    """how much of the part's unit it is to do"""


@dataclass(frozen=True)
class Part:
    """A row of the table, and its cases."""

    module: str
    """where it is, ``__name__``"""
    title: str
    unit: str
    wanted: str
    cases: Callable[[Campaign], Iterable[Case]]
    figures: Mapping[str, Callable[[Iterable[float]], float]] = field(default_factory=dict)
    """names, with units, of figures that outcomes hold, and how those of all cases become one"""
    alone: bool = False
    """no two cases at once"""
    busy: int = 0
    """processes that do nothing but keep processors busy beside the cases, however many of these run at once"""
    limit_s: float = 3600.0
    """most seconds that a case may take"""
    missing: Callable[[Campaign], str] = lambda campaign: ""
    """what is missing to run it here; empty = nothing"""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.module.rpartition(".")[2]


def load_part(module: str) -> Part:
    """The part that a module holds."""
    return import_module(module).PART
