"""The networks that play, as KataGo's clients ask for them: ``kata-get-models`` and ``query_models``."""

from typing import TYPE_CHECKING, Any

from weights import NetworkPath, files_of

if TYPE_CHECKING:
    from engine.inference.server import InferenceServer


def described(network: NetworkPath | None, server: "InferenceServer | None") -> list[dict[str, Any]]:
    """KataGo's description of each file of a network; none where rollouts play alone."""
    from engine.nets.files.header import recognise

    files = files_of(network)
    if server is None:
        return []
    return [
        {
            "name": str(file),
            "internalName": recognise(file).network if len(files) > 1 else server.spec.name,
            "maxBatchSize": server.max_batch,
            "usesHumanSLProfile": False,
            "version": recognise(file).version,
            "usingFP16": "auto",
        }
        for file in files
    ]
