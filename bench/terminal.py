"""What the commands of bench share at a terminal: a bar and lines on standard error."""

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, ProgressColumn, TimeElapsedColumn

from gtp.cli.terminal import bar


def progress_bar(console: Console, last: ProgressColumn | None = None) -> Progress:
    """A bar that vanishes at the end; none where standard error is no terminal.

    Args:
        last: the column on the right; None = the time passed.
    """
    columns = MofNCompleteColumn(), last or TimeElapsedColumn()
    return bar(console, *columns, transient=True, disable=not console.is_terminal)


def say(console: Console, text: str) -> None:
    """One line, as it is."""
    console.print(text, highlight=False, markup=False, soft_wrap=True)
