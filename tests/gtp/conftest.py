"""One engine for many tests: a start costs seconds."""

from collections.abc import Callable, Iterator

import pytest

from tests.gtp.process import Engine

AS_STARTED = (
    "boardsize 9", "clear_board", "komi 7.5", "kata-set-rules chinese", "time_settings 0 1 0",
    "kata-set-param visits 8", "kata-set-param seconds 0", "kata-set-param policy-only false",
    "kata-set-param temperature 0", "kata-set-param resign-below -0.9", "kata-set-param ponder false",
)  # fmt: skip


@pytest.fixture(scope="session")
def shared_engine() -> Iterator[Engine]:
    """A process that plays 9x9 without a network, eight visits a move."""
    with Engine("--visits", "8", "--seed", "3") as started:
        yield started


@pytest.fixture
def engine(shared_engine) -> Engine:
    """That process as if just started; whatever a test changes besides the board it changes back."""
    for command in AS_STARTED:
        assert shared_engine.ask(command) == "="
    return shared_engine


@pytest.fixture(scope="session")
def shared_network_engine() -> Iterator[Engine]:
    """A process that plays 9x9 with the default network."""
    with Engine("--weights", "default", "--seed", "3") as started:
        started.ready()
        yield started


@pytest.fixture
def network(shared_network_engine) -> Callable[[str], str]:
    """Send that process a command and wait for the reply; at first as without a network, eight visits a move."""
    for command in (*AS_STARTED, "kata-set-param early-stop true"):
        assert shared_network_engine.ask(command) == "="
    return shared_network_engine.ask


@pytest.fixture
def ask(engine) -> Callable[[str], str]:
    """Send that process a command and wait for the reply."""
    return engine.ask
