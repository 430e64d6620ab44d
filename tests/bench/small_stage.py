"""A stage of ``keima alphago`` whose commands are small programs."""

from bench.alphago.stages import Command, Stage

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


def stage_of(tmp_path, *ends):
    """A stage of small programs, each with its exit status, "waits", or "deaf": waits, whatever Ctrl-C says."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    made = [
        Command((str(program), str(tmp_path / f"made-{i}"), end), tmp_path / f"made-{i}") for i, end in enumerate(ends)
    ]
    return Stage("stage", "what it is", tuple(made), 1.0)
