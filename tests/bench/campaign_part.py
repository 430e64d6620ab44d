"""A part for the tests of the campaign: cases that pass, fail, raise, die and wait."""

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.reliability.part import Campaign, Case, Outcome, Part


def _run(name: str, folder: Path) -> Outcome:
    assert not list(folder.iterdir())
    (folder / "trace").touch()
    print("stray words")
    match name:
        case "faulty":
            return Outcome(["one", "two"], {"worst, s": 3.0}, amount=1)
        case "raises":
            raise ValueError("wrong")
        case "dies":
            os._exit(7)
    return Outcome(figures={"worst, s": 2.0})


def _wait(file: Path, folder: Path) -> Outcome:
    file.with_suffix(".new").write_text(f"{os.getpid()} {folder}")
    file.with_suffix(".new").rename(file)
    time.sleep(1000)
    return Outcome()


def _cases(campaign: Campaign) -> Iterator[Case]:
    if campaign.games:
        yield Case("waits", partial(_wait, campaign.games))
        return
    for name in ("good", "faulty", "raises", "dies", "last"):
        yield Case(name, partial(_run, name), amount=2)


PART = Part(__name__, "A part", "things", "no faults", _cases, figures={"worst, s": max}, limit_s=60)
