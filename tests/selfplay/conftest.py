"""Networks for games on small boards: a file with random weights, and one made of hashes that is being asked."""

from pathlib import Path

import pytest

from engine.inference.server import InferenceServer
from engine.nets.architectures.registry import new_spec
from engine.nets.fakes import HashNetwork
from engine.nets.files.checkpoint import save_network
from tests.nets.models import toy


@pytest.fixture
def start(tmp_path) -> Path:
    """A policy network for 5x5 in a file of its own."""
    model = toy("alphago-policy", planes=48, size=5, filters=4)
    path = tmp_path / "start.safetensors"
    save_network(path, model, new_spec(model, "start"), {})
    return path


@pytest.fixture(scope="module")
def server():
    with InferenceServer(HashNetwork("alphago-48"), threads=2) as made:
        yield made
