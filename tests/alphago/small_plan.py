"""A plan of ``keima alphago`` whose commands are small programs."""

import shlex

from engine.alphago.run import Run
from engine.alphago.stages import PRESETS, Command, Plan, Stage

PROGRAM = """
import pathlib, signal, sys, time
if sys.argv[2] == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
out = pathlib.Path(sys.argv[1])
with out.open("a") as file:
    file.write("x")
if sys.argv[2] in ("waits", "deaf"):
    time.sleep(600)
sys.exit(int(sys.argv[2]))
"""


def run_of(out, preset="tour", people=(), device="cpu"):
    """A plan being carried out."""
    return Run(Plan(out, PRESETS[preset], people, device, 1))


def stage_of(out, *ends, more=""):
    """A stage of small programs, each with its exit status, "waits", or "deaf": waits and ignores Ctrl-C."""
    out.mkdir(exist_ok=True)
    (program := out / "program.py").write_text(PROGRAM)
    commands = [
        Command(f"made-{i}.txt", f"{shlex.quote(str(program))} made-{i}.txt {end}{more}") for i, end in enumerate(ends)
    ]
    return Stage("stage", "what it is", 1.0, tuple(commands))


def quietly(run, stage, waits=lambda: None):
    """Run a stage and ignore what it reports."""
    run.run(stage, 1, lambda command: None, waits)
