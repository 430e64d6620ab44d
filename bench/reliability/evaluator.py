"""Networks that fail, hang, run out of memory or output NaN while the engine plays.

The game must continue or end with an error of one line: every move is legal and in time, none is a pass or a
resignation in the opening, standard error names the fault without a traceback, and the process ends at ``quit``.
"""

import time
from itertools import product

import pytest

from bench.match.gtp_client import EngineRefused
from bench.reliability.campaign import Outcome, Part
from bench.reliability.made_network import FAULTS, UNLIMITED, started
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex

PART = Part(
    title="Evaluator faults (error, hang, out of memory, NaN) while playing",
    unit="games",
    wanted="the game continues or ends with one line; never a wrong move, never silence",
    figures={"slowest move, s": max},
)
WHEN = {"at the first move": (0, UNLIMITED), "in mid-game": (400, UNLIMITED), "for a while": (200, 60)}
"""Moment of the fault -> number of network calls before it, not counting START_CALLS, and number of calls with it"""
START_CALLS = 40
"""Upper bound of the network calls while the engine starts, none of which may fail"""
LIMITS = {
    "byo-yomi": (("--seconds", "1"), "kata-time_settings byoyomi 0 1 3", 1.0),
    "seconds": (("--seconds", "0.5"), "", 5.0),
    "visits": (("--visits", "40", "--seconds", "0"), "", 150.0),
    "pondering": (("--seconds", "0.3", "--ponder"), "", 5.0),
}
"""Name -> options, command that sets the clock, longest time for a move in seconds"""
ANSWER_S, END_S = 300.0, 10.0
SIZE, MOVES = 9, 24
"""Board size, and moves of a game: so few that a pass is still a mistake"""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every fault at every moment under every limit; the quick campaign has each fault once."""
    if metafunc.config.option.campaign["quick"]:
        cases = [(fault, list(WHEN)[number % 3], "byo-yomi", 1) for number, fault in enumerate(FAULTS)]
    else:
        cases = list(product(FAULTS, WHEN, LIMITS, (1, 2)))
    metafunc.parametrize(("fault", "when", "limit", "seed"), cases)


def test_game(fault: str, when: str, limit: str, seed: int, outcome: Outcome) -> None:
    """Play one game with a faulty network."""
    good, bad = WHEN[when]
    options, clock, longest_s = LIMITS[limit]
    network = {"fault": fault, "good": START_CALLS + good, "bad": bad}
    words = ("--size", str(SIZE), "--seed", str(seed), "--memory", "64", *options)
    faults, slowest_s, game = outcome.faults, 0.0, Game(SIZE)
    with started(network, *words) as client:
        try:
            if clock:
                client.ask(clock, ANSWER_S)
            for n in range(MOVES):
                color, name = ((BLACK, "b"), (WHITE, "w"))[n % 2]
                answer = client.ask(f"genmove {name}", ANSWER_S)
                slowest_s = max(slowest_s, client.last_answer_s)
                if client.last_answer_s > longest_s:
                    faults.append(f"move {n} took {client.last_answer_s:.2f} s, expected at most {longest_s:g} s")
                if answer in ("pass", "resign") or not game.is_legal(color, from_vertex(answer, SIZE)):
                    faults.append(f"move {n}: {answer}, expected a legal move on the board")
                    return
                game.play(color, from_vertex(answer, SIZE))
            for question in ("final_score", "final_status_list dead"):
                client.ask(question, ANSWER_S)
        except EngineRefused as refused:
            if "\n" in str(refused) or "internal error" in str(refused):
                faults.append(f"ended with {refused}, expected an error of one line")
        begun_s = time.perf_counter()
        client.close()
        if time.perf_counter() - begun_s > END_S:
            faults.append(f"quit took {time.perf_counter() - begun_s:.1f} s, expected at most {END_S:g} s")
        if "Traceback" in client.said:
            faults.append(f"a traceback on standard error:\n{client.said}")
        if "network hash" not in client.said and not faults and when != "for a while":
            faults.append(f"standard error does not name the network's fault:\n{client.said}")
    outcome.figures = {"slowest move, s": slowest_s}
