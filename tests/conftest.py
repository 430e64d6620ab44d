"""What every test may use: markers that skip where something is missing, and paths.

``slow`` tests, which take minutes or measure time, are left out by the default options in pyproject.toml. The other
markers skip by themselves: ``shared`` without the reference material beside the checkout, ``clients`` without the
program, ``gpu`` without a CUDA device.
"""

import os
import shutil
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
# The user's own settings file is no part of what is tested.
os.environ["KEIMA_CONFIG"] = "none"
# Tests run beside each other, one a core, and torch's threads spin: with more than one each is slower, and all others.
os.environ["OMP_NUM_THREADS"] = "1"
# How long an example takes depends on how busy the machine is.
hypothesis_settings.register_profile("without a clock", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("without a clock")
GAMES_FOLDERS = ("/usr/games", "/usr/local/games")
"""Where Debian puts games; not on the search path of every account"""


def find_program(name: str) -> str | None:
    """Full path of a program on the search path or among the games, or None."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *GAMES_FOLDERS)))


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a marked test whose requirement is not met here."""
    if item.get_closest_marker("shared") and not SHARED.is_dir():
        pytest.skip(f"needs {SHARED}")
    for marker in item.iter_markers("clients"):
        for name in marker.args or ("gnugo",):
            if find_program(name) is None:
                pytest.skip(f"needs the program {name}")
    if item.get_closest_marker("gpu"):
        import torch

        if not torch.cuda.is_available():
            pytest.skip("needs a CUDA device")


@pytest.fixture(scope="session")
def shared_path() -> Path:
    """Folder of reference material beside the checkout; skips the test without it."""
    if not SHARED.is_dir():
        pytest.skip(f"needs {SHARED}")
    return SHARED


@pytest.fixture(scope="session")
def gnugo() -> str:
    """Path of GNU Go; skips the test without it."""
    path = find_program("gnugo")
    if path is None:
        pytest.skip("needs the program gnugo")
    return path


@pytest.fixture
def interruptible():
    """Children that Ctrl-C ends, also where this process was started with the signal ignored, as shells start jobs."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def make_player():
    """Players that are closed at the end: rollouts alone on 9x9, one thread and one seed, unless a test wants more."""
    from engine.play.player import Player
    from tests.playing import FEW, SEARCH

    players = []

    def make(options=FEW, **settings):
        known = {name: settings.pop(name) for name in ("seed", "uniform_rollouts") if name in settings}
        players.append(Player(replace(SEARCH, **known), options, size=settings.pop("size", 9), **settings))
        return players[-1]

    yield make
    for player in players:
        player.close()


@pytest.fixture(scope="session")
def tiny_network(tmp_path_factory) -> Path:
    """A file with a network of random weights, always the same, for boards of 7 to 9."""

    from engine.features.encoder import KEIMA
    from engine.nets.architectures.resnet import ResNet, ResNetShape
    from engine.nets.files.checkpoint import save_network
    from engine.nets.layers import Drawn
    from engine.nets.network import HEADS, NetworkSpec

    path = tmp_path_factory.mktemp("weights") / "tiny.safetensors"
    spec = NetworkSpec("tiny", KEIMA.name, 7, 9, tuple(HEADS))
    network = ResNet(ResNetShape(KEIMA.planes, KEIMA.globals, 1, 8), Drawn(1))
    save_network(path, network, spec, {})
    return path
