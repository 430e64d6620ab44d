"""A program that uses every name of the library; type checkers read it, and tests may run it."""

import asyncio
from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import keima


def said(info: keima.Info) -> str:
    """A line about a search."""
    assert_type(info.win_rate, keima.WinRate)
    assert_type(info.lead, keima.Lead | None)
    assert_type(info.candidates, list[keima.Candidate])
    assert_type(info.policy, NDArray[np.float32] | None)
    owners: keima.Ownership | None = info.ownership
    mine = 0 if owners is None else int((owners.relative > 0.5).sum())
    best: keima.Candidate = info.candidates[0]
    lost = [one.points_lost for one in info.candidates if one.points_lost is not None and one.points_lost < 1.0]
    return f"{info.move} {best.win_rate.relative:.1%} {best.lcb.pov(keima.BLACK):.1%} {mine} {len(lost)} {info.pv}"


def walk(tree: keima.Tree) -> list[keima.Move]:
    """The moves of the tree's line, by its nodes."""
    node: keima.TreeNode = tree.root
    assert_type(tree.visits, NDArray[np.int32])
    while node.children:
        node = node.children[0]
    assert_type(node.parent, keima.TreeNode | None)
    return node.path()


async def ask(engine: keima.Engine, boards: list[keima.Board], limit: keima.Limit) -> None:
    """The coroutines."""
    assert_type(await engine.play_async(boards[0], limit), keima.Played)
    assert_type(await engine.analyse_async(boards[0], limit), keima.Info)
    assert_type(await engine.analyse_async(boards, limit), list[keima.Info])
    async with engine.analysis(boards[0], limit) as analysis:
        async for info in analysis:
            print(said(info))


def main() -> None:
    """Use the library."""
    color: keima.Color = keima.Color.of("white")
    like: keima.ColorLike = "b"
    moves: list[keima.MoveLike] = ["E5", (4, 2), 0]
    marks: keima.MarksLike = {"E5": "circle"}
    board = keima.Board(9, moves=moves)
    picture: keima.Picture = board.svg(marks=marks)
    record = keima.Record(board)
    node: keima.Node = record.root
    limit = keima.Limit(visits=20)
    options = keima.SearchOptions(c_puct=1.2)
    with keima.Engine("default", threads=1, seed=1, level="max", search=options) as engine:
        assert_type(engine.analyse(board, limit), keima.Info)
        infos = engine.analyse([board, keima.Board(7)], limit, avoid=["A1"], allow=None)
        assert_type(infos, list[keima.Info])
        info = engine.analyse(board, keima.Limit(playouts=10, seconds=5.0))
        print(said(info), walk(engine.tree()), len(info.svg()), len(picture))
        played: keima.Played = engine.play(board, limit, level="5k", may_resign=False)
        if played.move is not None:
            board.play(played.move)
        analysis: keima.Analysis = engine.analysis(board, limit, interval=0.05)
        for info in analysis:
            print(said(info))
        estimate: keima.Estimate = engine.estimate(board)
        lead: keima.Lead = estimate.lead
        print(lead.pov(color), lead.pov(like), estimate.dead, keima.WHITE, node.children, keima.__version__)
        asyncio.run(ask(engine, [board], limit))
        assert_type(engine.network, keima.Network)
        review: keima.Review = keima.review(board, engine, limit=keima.Limit(visits=2))
        rated: list[keima.ReviewedMove] = review.moves
        print(evaluated(engine.network, board), [one.points_lost for one in rated], review.accuracy[keima.BLACK])
    result: keima.MatchResult = keima.match("small", "small", games=2, size=7, visits=1)
    print(result.interval, result.elo)


def evaluated(network: keima.Network, board: keima.Board) -> float:
    """A network's outputs and inputs, for one board and for many."""
    one: keima.Evaluation = network.evaluate(board)
    many: keima.Evaluations = network.evaluate([board, board])
    planes, globals_ = keima.encode([board], network.encoder)
    assert_type(one.best(3), list[tuple[keima.Move, float]])
    assert one.win_rate is not None and many.win_rate_black is not None
    return one.win_rate.black + float(many.win_rate_black[1]) + len(network.trace(board)) + planes.size + globals_.size


def learn(folder: Path) -> Path:
    """A network from game records."""
    counts: dict[str, int] = keima.build_data([folder / "sgf"], folder / "data", sizes=[9])
    print(counts["train"])
    options = keima.TrainOptions(steps=100)
    validation = folder / "data" / "validation.npz.xz"
    return keima.train(folder / "run", games=[folder / "data" / "train"], validation=validation, options=options)


if __name__ == "__main__":
    main()
