"""What a search takes beside its tree is counted as it is really allocated, and refused where it is too much."""

import numpy as np
import pytest

from engine.config import SearchOptions
from engine.features.encoder import ENCODERS
from engine.inference.server import InferenceServer
from engine.nets.fakes import UniformNetwork
from engine.play.factory import load_parts
from engine.search.search import Search
from engine.search.tuning import check_memory, resolved, working_bytes


def held(thing):
    """Bytes of all arrays below something."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if isinstance(thing, tuple | list):
        return sum(map(held, thing))
    return held(list(vars(thing).values())) if type(thing).__name__ in ("Request", "_Flight") else 0


@pytest.mark.parametrize(("encoder", "threads", "batch"), [("keima-1", 3, 128), ("katago-v7", 2, 64), (None, 2, 512)])
def test_the_count_is_about_what_workers_allocate(encoder, threads, batch):
    network = UniformNetwork(encoder, 19, 19) if encoder else None
    options = resolved(SearchOptions(threads=threads, batch=batch, evaluators=2), network)
    if network is None:
        search = Search(options, None, None)
        search._make_workers()
        # Without a network the first board is one of 9x9.
        assert sum(held(list(vars(worker).values())) for worker in search._workers.each) < working_bytes(
            options, None, None
        )
        return
    with InferenceServer(network, 1, 2) as server:
        search = Search(options, server, ENCODERS[encoder])
        real = sum(held([each for name, each in vars(one).items() if name != "_idle"]) for one in search._workers.each)
    assert 0.9 < working_bytes(options, network, ENCODERS[encoder]) / real < 1.2


def test_too_much_is_one_line_and_more_memory_allows_it():
    network, encoder = UniformNetwork("keima-1"), ENCODERS["keima-1"]
    options = resolved(SearchOptions(threads=64, batch=512), network)
    with pytest.raises(ValueError, match=r"^threads 64 and batch 512 need [\d,]+ MiB .* at most 1,024 MiB: .*$"):
        check_memory(options, network, encoder)
    check_memory(resolved(SearchOptions(threads=64, batch=512, memory=8192), network), network, encoder)
    # What the engine chooses by itself is allowed on the smallest memory.
    check_memory(resolved(SearchOptions(memory=64), network), network, encoder)
    with pytest.raises(ValueError, match="threads 256 and batch 512 need"):
        load_parts(SearchOptions(threads=256, batch=512), None, "cpu")
