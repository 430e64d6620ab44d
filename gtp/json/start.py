"""From settings and a network to an engine that answers: what is loaded, compiled and tried before the first line."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gtp.analysing import load_analysing
from gtp.json.settings import Settings
from gtp.models import described
from gtp.session import Output

if TYPE_CHECKING:
    from gtp.json.engine import JsonEngine

STATUS_UNREAD = 1


def load_engine(settings: Settings, network: Path | tuple[Path, Path] | None, device: str, at_once: int,
                output: Output) -> "JsonEngine":  # fmt: skip
    """Load what analyses; arguments and errors as of :func:`gtp.analysing.load_analysing`."""
    loaded = load_analysing(settings.search, network, device, at_once)
    from gtp.json.engine import JsonEngine

    return JsonEngine(loaded.analyses, settings, Sender(output), lambda: described(network, loaded.server))


class Sender:
    """Writes lines to a client; without one that reads them the process ends."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def __call__(self, text: str) -> None:
        """Send a line at once."""
        try:
            self._output.write(text)
        except OSError:
            print("keima: the answers are no longer read", file=sys.stderr, flush=True)
            os._exit(STATUS_UNREAD)
