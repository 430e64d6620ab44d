"""A network that fails, hangs, runs out of memory or says no numbers while the engine plays.

Wanted is that the game goes on, or ends with one line of an answer: every move is legal and in time, none is a pass or
a resignation in the opening, standard error says what is wrong in lines, and the process ends when it is told to.
"""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from bench.match.gtp_client import ROOT, EngineError, EngineRefused, GtpClient
from bench.reliability.clocked import SETTLE_S
from bench.reliability.made_network import command
from bench.reliability.part import Campaign, Case, Outcome, Part
from engine.features.encoder import KEIMA
from engine.go.game import Game
from engine.go.geometry import BLACK, WHITE, from_vertex
from engine.play import ahead

FAULTS = ("error", "hang", "memory", "nan")
WHEN = {"at the first move": (0, None), "in mid-game": (400, None), "for a while": (200, 60)}
"""Calls of the network after those of the start, and calls that fail then; None = all"""
START_CALLS = 40
"""More than the start makes: nothing fails before the first move"""
LIMITS = {
    "byo-yomi": (("--seconds", "1"), "kata-time_settings byoyomi 0 1 3", 1.0),
    "seconds": (("--seconds", "0.5"), "", 5.0),
    "visits": (("--visits", "40", "--seconds", "0"), "", 150.0),
    "pondering": (("--seconds", "0.3", "--ponder"), "", 5.0),
}
"""Name -> options, clock, and the longest that a move may take"""
START_S, ANSWER_S, END_S = 600.0, 300.0, 10.0
SIZE, MOVES = 9, 24
"""Few enough that nothing is settled, and a pass is a wrong move"""


def _play(fault: str, when: str, limit: str, seed: int, folder: Path) -> Outcome:
    """One game."""
    good, bad = WHEN[when]
    options, clock, longest_s = LIMITS[limit]
    network: dict[str, object] = {"fault": fault, "good": START_CALLS + good}
    network |= {"bad": bad} if bad is not None else {}
    words = command(network, "--size", str(SIZE), "--seed", str(seed), "--memory", "64", *options)
    ahead.compile_kernels(KEIMA.name)
    faults, slowest_s, game = [], 0.0, Game(SIZE)
    with GtpClient(words, ROOT) as client:
        try:
            client.ask("kata-get-rules", START_S)
            client.ask("final_score", START_S)
            time.sleep(SETTLE_S)
            if clock:
                client.ask(clock, ANSWER_S)
            for n in range(MOVES):
                color, name = ((BLACK, "b"), (WHITE, "w"))[n % 2]
                answer = client.ask(f"genmove {name}", ANSWER_S)
                slowest_s = max(slowest_s, client.last_answer_s)
                if client.last_answer_s > longest_s:
                    faults.append(f"move {n} took {client.last_answer_s:.2f} s, expected at most {longest_s:g} s")
                if answer in ("pass", "resign") or not game.is_legal(color, from_vertex(answer, SIZE)):
                    return Outcome([*faults, f"move {n}: {answer}, which is a wrong move here"])
                game.play(color, from_vertex(answer, SIZE))
            for question in ("final_score", "final_status_list dead"):
                client.ask(question, ANSWER_S)
        except EngineRefused as refused:
            if "\n" in str(refused) or "internal error" in str(refused):
                faults.append(f"ended with more than a line: {refused}")
        except EngineError as error:
            return Outcome([*faults, f"after {game.n_moves} moves: {error}"])
        begun_s = time.perf_counter()
        client.close()
        if time.perf_counter() - begun_s > END_S:
            faults.append(f"quit took {time.perf_counter() - begun_s:.1f} s, expected at most {END_S:g} s")
        said = client.said
        if "Traceback" in said:
            faults.append(f"standard error has more than lines for people:\n{said}")
        if "network hash" not in said and not faults and when != "for a while":
            faults.append(f"nothing says that the network fails; standard error:\n{said}")
    return Outcome(faults, {"slowest move, s": slowest_s})


def _cases(campaign: Campaign) -> Iterator[Case]:
    """Every fault at every moment under every limit; the short form has each fault once."""
    for index, fault in enumerate(FAULTS):
        for when in list(WHEN)[index % 3 :][:1] if campaign.quick else WHEN:
            for limit in ("byo-yomi",) if campaign.quick else LIMITS:
                for seed in (1,) if campaign.quick else (1, 2):
                    yield Case(f"{fault} {when}, {limit}, {seed}", partial(_play, fault, when, limit, seed))


PART = Part(
    __name__,
    title="Evaluator faults (error, hang, out of memory, NaN) while playing",
    unit="games",
    wanted="the game goes on or ends with one line; never a wrong move, never silence",
    cases=_cases,
    figures={"slowest move, s": max},
    limit_s=3600.0,
)
