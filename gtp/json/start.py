"""From settings and a network to an engine that answers: what is loaded, compiled and tried before the first line."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gtp import startup
from gtp.json.settings import Settings
from gtp.models import described
from gtp.session import Output

if TYPE_CHECKING:
    from gtp.json.engine import JsonEngine

STATUS_UNREAD = 1
WARM_UP_SIZE, WARM_UP_VISITS = 9, 8


def load_engine(settings: Settings, network: Path | tuple[Path, Path] | None, device: str, at_once: int,
                output: Output) -> "JsonEngine":  # fmt: skip
    """Import what analyses, load the network, and use everything once; shows what takes long.

    Args:
        network: None = rollouts alone.
        at_once: positions searched side by side; 0 = as many as the device wants.
    Raises:
        ValueError: a setting cannot be used; one clear line.
    """
    startup.calm_openmp()
    from engine.nets.files.header import expected_input
    from engine.play import ahead

    expected = expected_input(network)
    encoder = expected.encoder if expected else ""
    left = ahead.missing(encoder) if encoder else []
    if left:
        ahead.start_helpers(encoder)
    with startup.compile_progress(encoder if left else ""):
        from engine.insight.analyses import Analyses, new_analysis_server, positions_at_once
        from engine.play.assembly import load_parts
        from gtp.json.engine import JsonEngine

        if left:
            ahead.compile_pieces(encoder, ahead.FIRST)
        parts = load_parts(settings.search, network, device)
        server = new_analysis_server(parts)
        analyses = Analyses(parts, server, at_once or positions_at_once(parts))
        analyses.warm_up(server.spec.max_size if server else WARM_UP_SIZE, WARM_UP_VISITS)
    return JsonEngine(analyses, settings, Sender(output), lambda: described(network, server))


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
