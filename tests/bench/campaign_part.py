"""A part for the tests of the campaign: cases that pass, fail, raise, die, hang and wait."""

import os
import signal
import time
from pathlib import Path

import pytest

from bench.reliability import campaign as plugin

PART = plugin.Part("A part", "things", "no faults", figures={"worst, s": max}, busy=1, limit_s=5.0)
plugin.STOP_S = 0.5
NAMES = ("good", "faulty", "raises", "dies", "stuck", "last")


def pytest_generate_tests(metafunc):
    names = ("waits",) if metafunc.config.option.campaign["games"] else NAMES
    hangs = pytest.param("hangs", 2, marks=pytest.mark.timeout(0.5))
    metafunc.parametrize(("name", "amount"), [*((name, 2) for name in names), *([hangs] if len(names) > 1 else [])])


def test_case(name, amount, campaign, folder, outcome):
    assert not list(folder.iterdir())
    (folder / "trace").touch()
    print("stray words")
    outcome.figures = {"worst, s": 2.0}
    match name:
        case "faulty":
            outcome.faults += ["one", "two"]
            outcome.figures, outcome.amount = {"worst, s": 3.0}, 1
        case "raises":
            raise ValueError("wrong")
        case "dies":
            os._exit(7)
        case "hangs":
            time.sleep(1000)
        case "stuck":
            signal.signal(signal.SIGALRM, signal.SIG_IGN)  # as in a kernel without end
            time.sleep(1000)
        case "waits":
            file = Path(campaign["games"]) / "told"
            file.with_suffix(".new").write_text(f"{os.getpid()} {folder}")
            file.with_suffix(".new").rename(file)
            time.sleep(1000)
