"""What analyses many positions side by side, loaded, compiled and tried: for JSON and for reviews."""

from typing import TYPE_CHECKING, NamedTuple

from gtp.startup import compiling_ahead
from weights import NetworkPath

if TYPE_CHECKING:
    from engine.config import SearchOptions
    from engine.inference.server import InferenceServer
    from engine.insight.analyses import Analyses

WARM_UP_SIZE, WARM_UP_VISITS = 9, 8


class Analysing(NamedTuple):
    """Ready to analyse."""

    analyses: "Analyses"
    server: "InferenceServer | None"
    """None = there is no network"""
    at_once: int
    """positions side by side"""


def load_analysing(options: "SearchOptions", network: NetworkPath | None, device: str,
                   at_once: int = 0) -> Analysing:  # fmt: skip
    """Import what analyses, load the network, and use everything once; shows what takes long.

    Args:
        network: None = rollouts alone.
        at_once: positions searched side by side; 0 = as many as the device wants.
    Raises:
        ValueError: a setting cannot be used; one clear line.
    """
    from engine.nets.files.header import expected_input

    expected = expected_input(network)
    with compiling_ahead(expected.encoder if expected else "") as ahead:
        from engine.insight.analyses import Analyses, positions_at_once
        from engine.play.assembly import load_parts, new_server

        ahead.compile_first()
        parts = load_parts(options, network, device)
        server = new_server(parts, shared=True)
        count = positions_at_once(parts, at_once)
        analyses = Analyses(parts, server, count)
        analyses.warm_up(server.spec.max_size if server else WARM_UP_SIZE, WARM_UP_VISITS)
    return Analysing(analyses, server, count)
