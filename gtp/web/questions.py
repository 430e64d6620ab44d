"""Questions about the shown position, whose answers change nothing: a rollout, and the network's hidden layers."""

import os
from collections.abc import Mapping
from typing import Any

from engine.config import SearchOptions
from engine.go.position import Position
from engine.insight.layers import layers
from engine.insight.thinking import rollout
from gtp.web.settings import word
from weights import NetworkPath

QUESTIONS = ("rollout", "layers")


def answer(
    name: str, position: Position, body: Mapping[str, Any], network: NetworkPath | None, options: SearchOptions
) -> dict[str, Any]:
    """The answer to one of :data:`QUESTIONS`, as more keys of the reply.

    Args:
        position: only read.
        body: for ``layers`` with the name of a layer, by default the first.
        options: name the rollout policy.
    Raises:
        ValueError: the question has no answer, such as layers without a network; one line.
    """
    if name == "rollout":
        return {"rollout": rollout(position, options, int.from_bytes(os.urandom(7), "little"))}
    return layers(network, position, word(body, "layer", "") or None)
