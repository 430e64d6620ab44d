"""The library's engine: moves, analyses, limits, filters, many boards at once, interruptions and errors."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import keima
from keima import BLACK, WHITE, Board, Engine, Limit
from tests.keima import typed_program

FEW = Limit(visits=40)
ENDLESS = Limit(visits=10**9)


@pytest.fixture(scope="module")
def loaded():
    """The default network, reproducible."""
    with Engine(threads=1, seed=1) as engine:
        yield engine


@pytest.fixture
def engine(loaded):
    """The default network, without a tree."""
    loaded.clear()
    return loaded


def in_atari():
    """A board where Black captures three stones at G5; White's move there would connect them."""
    black = ["D6", "E6", "F6", "D4", "E4", "F4", "C5"]
    return Board.from_stones(9, black, ["D5", "E5", "F5", "H5", "H6", "H4", "C6", "C4"], BLACK)


def until_searched(engine):
    """Wait until a search of the engine has a tree with visits."""
    while True:
        try:
            if engine.tree().root.visits > 1:
                return
        except ValueError:
            pass


# Moves and analyses


def test_the_obvious_move_is_found(engine):
    board = in_atari()
    info = engine.analyse(board, FEW)
    assert info.move == "G5" == info.candidates[0].move == info.pv[0]
    assert engine.play(board, FEW).move == "G5"
    assert board == in_atari()


def test_values_name_their_perspective(engine):
    board = in_atari()
    info = engine.analyse(board, FEW)
    assert info.to_move is BLACK and info.win_rate.black > 0.6 and info.win_rate.relative == info.win_rate.black
    assert info.lead.black > 1 and info.lead.white == -info.lead.black
    assert info.ownership.black[4, 4] > 0.2 and info.ownership.black.shape == (9, 9)
    board.play("G5")
    after = engine.analyse(board, FEW)
    assert after.to_move is WHITE and after.win_rate.black > 0.6
    assert after.win_rate.relative == after.win_rate.white == 1 - after.win_rate.black
    assert after.ownership.relative[4, 4] < -0.2 and after.lead.relative < -1


def test_an_analysis_says_all_that_is_known(engine):
    info = engine.analyse(Board(9), Limit(visits=100))
    assert info.visits == 100 and info.playouts == 100 and info.seconds > 0
    assert sum(one.visits for one in info.candidates) == 99
    assert info.policy.shape == (82,) and info.policy.sum() == pytest.approx(1, abs=1e-3)
    best = info.candidates[0]
    assert best.prior == pytest.approx(info.policy[best.move.policy_index])
    assert best.points_lost == 0 == best.win_rate_lost and best.lcb.black < best.win_rate.black
    assert best.pv[0] == best.move and len(best.pv) == len(best.pv_visits) and best.pv_visits[0] == best.visits
    assert all(one.points_lost >= 0 for one in info.candidates)
    with pytest.raises(ValueError, match="read-only"):
        info.policy[0] = 1
    assert str(best.move) in str(info) and "visits" in str(best)


def test_the_policy_is_that_of_legal_moves_filtered_or_not(engine):
    board = Board(9, moves="E5")
    info = engine.analyse(board, FEW, allow=["C3", "D3"])
    assert {one.move for one in info.candidates} <= {"C3", "D3"}
    assert info.policy[40] == 0 and np.count_nonzero(info.policy) > 70


def test_ownership_is_left_out_if_it_is_not_asked_for(engine):
    assert engine.analyse(Board(9), FEW, ownership=False).ownership is None


def test_a_network_is_not_needed():
    with Engine("none", threads=1, seed=1) as engine:
        info = engine.analyse(Board(5), FEW)
        assert info.visits == 40 and info.lead is not None and engine.sizes == (2, 25)


def test_an_info_draws_its_candidates(engine):
    info = engine.analyse(Board(9, moves="E5"), FEW)
    drawing = info._repr_svg_()
    assert "<svg" in drawing and "var(--k0)" in drawing and "visits" in drawing


def test_nothing_is_printed_on_standard_output(engine, capsys):
    engine.play(Board(9), FEW)
    engine.analyse([Board(9)], FEW)
    assert capsys.readouterr().out == ""


def test_filters_hold(engine):
    board = in_atari()
    assert engine.play(board, FEW, avoid=["G5"]).move != "G5"
    assert engine.analyse(board, FEW, avoid=["G5"]).move != "G5"
    assert engine.play(board, FEW, allow=["A1", (0, 0)]).move in ("A1", "A9")
    assert engine.play(board, FEW, allow=["A1", "B1"], avoid=["A1"]).move == "B1"
    assert engine.analyse([board, Board(9)], FEW, allow=["G5"])[0].move == "G5"
    with pytest.raises(ValueError, match=r"^avoid and allow leave Black no legal move$"):
        engine.play(board, FEW, allow=["E5"])
    with pytest.raises(ValueError, match="Z1"):
        engine.analyse(board, FEW, avoid=["Z1"])


# Limits


def test_visits_count_those_of_the_tree_and_playouts_do_not(engine):
    board = Board(9)
    assert engine.analyse(board, FEW).playouts == 40
    assert engine.analyse(board, FEW).playouts == 0
    info = engine.analyse(board, Limit(playouts=25))
    assert (info.visits, info.playouts) == (65, 25)
    assert engine.play(board, Limit(playouts=10)).info.visits == 75
    assert engine.analyse([board], Limit(playouts=30, visits=50))[0].visits == 30


def test_a_search_ends_with_its_time(engine):
    assert engine.analyse(Board(9), Limit(seconds=0.05)).visits > 0
    assert [info.visits > 0 for info in engine.analyse([Board(9), Board(7)], Limit(seconds=0.05))] == [True, True]


def test_a_limit_shows_what_it_limits():
    assert repr(Limit(visits=5)) == "Limit(visits=5)"
    assert Limit(visits=5) == Limit(visits=5, seconds=None)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({}, "limit is empty"),
        ({"visits": 0}, "limit of visits is 0, expected 1 or more"),
        ({"seconds": 0}, "limit of seconds is 0, expected more than 0"),
        ({"playouts": -1}, "limit of playouts is -1"),
        ({"seconds": float("nan")}, "limit of seconds is nan"),
    ],
)
def test_a_limit_is_positive(limits, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        Limit(**limits)


# Levels and resignation


def test_a_level_plays_with_its_visits(engine):
    played = engine.play(Board(9), level="15k")
    assert played.move is not None and played.info.visits < 40
    assert engine.play(Board(9), Limit(visits=1), level="5d").info.visits == 1
    with pytest.raises(ValueError, match=r"^level is '40k', expected 20k to"):
        engine.play(Board(9), level="40k")


def test_an_engine_has_a_level():
    with Engine(level="10k", threads=1, seed=1) as engine:
        assert engine.play(Board(9)).info.visits < engine.play(Board(9), FEW, level="max").info.visits


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": "no-such"}, "no-such"),
        ({"weights": "small", "level": "5k"}, "level 5k was measured with the network default"),
        ({"level": "auto"}, "level is 'auto'"),
        ({"threads": -1}, "threads"),
    ],
)
def test_what_cannot_be_loaded_is_said_in_one_line(arguments, message):
    with pytest.raises(ValueError, match=message) as caught:
        Engine(**arguments)
    assert "\n" not in str(caught.value)


def test_a_hopeless_game_is_resigned(engine):
    walls = [f"{column}{row}" for row in (3, 4, 6, 7) for column in "ABCDEFGHJ"]
    board = Board.from_stones(9, [], walls, BLACK)
    for _ in range(9):
        board.pass_()
        board.play(engine.play(board, Limit(visits=2), avoid=["pass"], may_resign=False).move)
    assert engine.play(board, FEW, avoid=["pass"], may_resign=False).move is not None
    for _ in range(4):
        played = engine.play(board, FEW, avoid=["pass"])
        if played.resigned:
            break
        board.play(played.move)
        board.play(engine.play(board, Limit(visits=2), avoid=["pass"], may_resign=False).move)
    assert played.resigned and played.move is None and played.info.win_rate.black < 0.1


def test_a_game_that_is_settled_ends_by_passes(engine):
    rows = [f"{column}{row}" for row in range(1, 10) for column in "E"]
    other = [f"{column}{row}" for row in range(1, 10) for column in "F"]
    eyes = [f"B{row}" for row in range(1, 10)], [f"H{row}" for row in range(1, 10)]
    board = Board.from_stones(9, rows + eyes[0], other + eyes[1], BLACK)
    board.pass_()
    assert engine.play(board, FEW).move == "pass"


# Many boards


def test_many_boards_are_searched_as_one_by_one(engine):
    boards = [Board(9), Board(7, moves="D4"), in_atari(), Board(13, moves="D4 K10"), Board(9, moves="E5 C3")]
    together = engine.analyse(boards, FEW)
    assert [info.board for info in together] == boards
    for board, info in zip(boards, together, strict=True):
        engine.clear()
        alone = engine.analyse(board, FEW)
        assert (info.visits, info.move, info.to_move) == (40, alone.move, board.to_move)
        assert [one.visits for one in info.candidates] == [one.visits for one in alone.candidates]
        assert info.win_rate.black == pytest.approx(alone.win_rate.black, abs=1e-4)
        assert info.lead.black == pytest.approx(alone.lead.black, abs=1e-2)
        np.testing.assert_allclose(info.policy, alone.policy, atol=1e-4)
        np.testing.assert_allclose(info.ownership.black, alone.ownership.black, atol=0.02)


def test_a_batch_whose_results_cannot_be_made_ends_its_searches(engine, monkeypatch):
    """Else they compete with those of the next batch."""

    def fail(*_):
        raise RuntimeError("no info")

    monkeypatch.setattr("keima.engine.info_of", fail)
    with pytest.raises(RuntimeError, match="no info"):
        engine.analyse([Board(9)] * 100, Limit(visits=1000))
    analyses = engine._batches[0]._analyses
    assert not analyses._queue or all(job.ended.is_set() for _, _, job in analyses._queue)
    assert all(job.ended.is_set() for job in analyses._running)


def test_no_boards_give_no_results(engine):
    assert engine.analyse([], FEW) == []


def test_a_board_that_the_network_does_not_play_is_refused(engine):
    for board in (Board(5), [Board(9), Board(5)]):
        with pytest.raises(ValueError, match=r"^board size is 5, but the network plays 7 to 19$"):
            engine.analyse(board, FEW)


# Live analyses


def test_a_live_analysis_is_stopped_after_some_results(engine):
    seen = []
    with engine.analysis(Board(9), interval=0.001) as analysis:
        for info in analysis:
            seen.append(info.visits)
            if len(seen) == 3:
                analysis.stop()
    assert 3 <= len(seen) <= 4 and seen == sorted(seen) and analysis.is_done and analysis.info.visits == seen[-1]


def test_leaving_the_loop_stops_the_search(engine):
    analysis = engine.analysis(Board(9), interval=0.001)
    for info in analysis:
        assert info.visits > 0
        break
    assert analysis.wait().visits >= info.visits


def test_a_live_analysis_ends_with_its_limit(engine):
    infos = list(engine.analysis(Board(9), FEW, interval=0.001))
    assert infos[-1].visits == 40


def test_another_call_ends_a_live_analysis(engine):
    analysis = engine.analysis(Board(9))
    assert engine.play(Board(9), Limit(visits=1)).move is not None
    analysis.wait()
    assert analysis.is_done
    waiting = engine.analysis(Board(9))
    engine.clear()
    assert waiting.wait() is None or waiting.info is not None


def test_live_results_are_an_async_iterable(engine):
    async def watch():
        async with engine.analysis(Board(9), interval=0.001) as analysis:
            async for info in analysis:
                if info.visits > 5:
                    return info
        return None

    assert asyncio.run(watch()).visits > 5


def test_an_interval_is_positive(engine):
    with pytest.raises(ValueError, match=r"^interval is 0, expected more than 0 seconds$"):
        engine.analysis(Board(9), interval=0)


# Coroutines and interruptions


def test_coroutines_return_what_calls_do(engine):
    async def ask():
        board = in_atari()
        return await asyncio.gather(
            engine.play_async(board, FEW), engine.analyse_async(board, FEW), engine.analyse_async([board], FEW)
        )

    played, info, infos = asyncio.run(ask())
    assert played.move == info.move == infos[0].move == "G5"


def test_a_cancelled_coroutine_stops_its_search_alone(engine):
    async def ask():
        long = asyncio.create_task(engine.analyse_async(Board(9), ENDLESS))
        waiting = asyncio.create_task(engine.analyse_async(Board(9), ENDLESS))
        short = asyncio.create_task(engine.play_async(in_atari(), FEW))
        await asyncio.get_running_loop().run_in_executor(None, until_searched, engine)
        waiting.cancel()
        long.cancel()
        done = await asyncio.gather(long, waiting, short, return_exceptions=True)
        batch = asyncio.create_task(engine.analyse_async([Board(9)] * 3, ENDLESS))
        await asyncio.sleep(0)
        batch.cancel()
        return [*done, *await asyncio.gather(batch, return_exceptions=True)]

    long, waiting, short, batch = asyncio.run(ask())
    assert isinstance(long, asyncio.CancelledError) and isinstance(waiting, asyncio.CancelledError)
    assert short.move == "G5" and isinstance(batch, asyncio.CancelledError)
    assert engine.analyse(Board(9), FEW).visits >= 40


@pytest.mark.parametrize("board", [Board(9), [Board(9)] * 20])
def test_ctrl_c_stops_a_search_and_the_engine_stays_usable(engine, interruptible, board):
    def interrupt():
        # Elsewhere in Python's own locks, an interruption would leave them locked.
        main, looks = threading.main_thread().ident, 0
        while looks < 20:
            time.sleep(0.001)
            is_waiting = sys._current_frames()[main].f_code is threading.Condition.wait.__code__
            looks = looks + 1 if is_waiting and engine._live._running is not None else 0
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        engine.analyse(board, ENDLESS)
    assert engine.analyse(Board(9), FEW).visits >= 40


def test_a_search_that_runs_when_the_engine_is_closed_raises():
    engine, raised = Engine("small", threads=1), []

    def search():
        try:
            engine.analyse(Board(9), ENDLESS)
        except ValueError as error:
            raised.append(str(error))

    thread = threading.Thread(target=search)
    thread.start()
    until_searched(engine)
    engine.close()
    thread.join()
    assert raised == ["the engine is closed"] and engine.is_closed
    for call in (engine.play, engine.analyse, engine.analysis, engine.estimate):
        with pytest.raises(ValueError, match=r"^the engine is closed$"):
            call(Board(9))
    engine.close()


def test_a_dropped_engine_is_closed():
    engine = Engine("small", threads=1)
    live = engine._live
    del engine
    assert live.submit(lambda player: None).exception() is not None


# Estimates


def test_an_estimate_names_dead_stones(engine):
    left = [f"D{row}" for row in range(1, 10)] + [f"B{row}" for row in range(1, 10)]
    right = [f"E{row}" for row in range(1, 10)] + [f"G{row}" for row in range(1, 10)]
    estimate = engine.estimate(Board.from_stones(9, left, [*right, "C5"], BLACK))
    assert set(estimate.dead) == {"C5"}
    assert estimate.ownership.black[4, 2] > 0.9 and estimate.lead.black == 36 - 45 - 7.5


# Types


def test_a_program_that_uses_every_name_runs(capsys):
    typed_program.main()
    assert "%" in capsys.readouterr().out


@pytest.mark.slow
def test_a_program_that_uses_every_name_passes_strict_type_checks():
    program = Path(__file__).with_name("typed_program.py")
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--disallow-any-explicit", str(program)],
        capture_output=True, text=True, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"keima.{name}" in program.read_text("utf-8") for name in keima.__all__ if name[0] != "_")
