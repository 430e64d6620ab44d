"""What the commands of bench share at a terminal: bars on standard error, and the exit status after Ctrl-C."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it"""


def progress_bar(console: Console, last: ProgressColumn | None = None) -> Progress:
    """A bar that vanishes at the end; none where standard error is no terminal.

    Args:
        last: the column on the right; None = the time passed.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), last or TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def say(console: Console, text: str) -> None:
    """One line, as it is."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)
