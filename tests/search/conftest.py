"""A search by a network that costs nothing."""

import pytest

from engine.config import SearchOptions
from engine.features.encoder import KEIMA
from engine.inference.server import InferenceServer
from engine.nets.fakes import HashNetwork
from engine.search.search import Search


@pytest.fixture
def hash_server():
    with InferenceServer(HashNetwork(KEIMA.name), threads=2) as server:
        yield server


@pytest.fixture
def search(hash_server):
    return Search(SearchOptions(threads=1), hash_server, KEIMA)
