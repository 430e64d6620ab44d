"""The networks that play, as KataGo's clients ask for them: ``kata-get-models`` and ``query_models``."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.inference.server import InferenceServer


def described(network: Path | tuple[Path, Path] | None, server: "InferenceServer | None") -> list[dict[str, Any]]:
    """KataGo's description of each file of a network; none where rollouts play alone."""
    from engine.nets.files.header import recognise

    if server is None or network is None:
        return []
    files = network if isinstance(network, tuple) else (network,)
    return [
        {
            "name": file.name,
            "internalName": recognise(file).network if len(files) > 1 else server.spec.name,
            "maxBatchSize": server.max_batch,
            "usesHumanSLProfile": False,
            "version": recognise(file).version,
            "usingFP16": "auto",
        }
        for file in files
    ]
