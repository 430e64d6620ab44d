"""Training from Python: data from game records, and networks from data."""

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from types import MappingProxyType
from typing import Any

from engine.config import TrainOptions

BEST, LATEST = "best.safetensors", "network.safetensors"
"""Files of a run: the network with the best metric, if training kept it apart, and the newest"""
KINDS = ("dual", "policy", "value")
"""Kinds of networks that :func:`train` makes"""
NO_SIZES: Mapping[str, int] = MappingProxyType({})
NO_SHARES: Mapping[Any, float] = MappingProxyType({})


def build_data(
    sources: "Iterable[str | PathLike[str]]", out: "str | PathLike[str]", *, sizes: Iterable[int] = (19,),
    min_rank: str = "", min_moves: int = 1, validation_share: float = 0.02, test_share: float = 0.02, workers: int = 1,
) -> dict[str, int]:  # fmt: skip
    """Make training data from game records, as ``keima data build``; equal games are kept once.

    Args:
        sources: SGF files, archives, or folders of these.
        out: new folder for the shards: ``train/``, ``validation.npz.xz`` and ``test.npz.xz``.
        sizes: board sizes to keep; empty = all.
        min_rank: lowest rank of both players, such as ``"3k"`` or ``"6d"``; empty = any.
        min_moves: least number of moves of a game.
        validation_share, test_share: shares of the games that are held out.
        workers: number of processes that read.
    Returns:
        number of games by split.
    Raises:
        ValueError: a source or an argument cannot be used, or no game is left; one line.
    """
    from engine.records.filters import Filters
    from engine.records.sgf_values import read_rank
    from engine.records.shards import BuildOptions, build

    filters = Filters(sizes=tuple(sizes), min_moves=min_moves, min_rank=read_rank(min_rank) if min_rank else 0)
    options = BuildOptions(
        _paths(sources), filters, validation_share=validation_share, test_share=test_share, workers=workers
    )
    manifest = build(options, Path(fspath(out)), lambda found: None, lambda done, total: None)
    return {name: int(count) for name, count in manifest["games"].items()}


def train(
    out: "str | PathLike[str]", *, games: "Iterable[str | PathLike[str]]" = (), validation: "str | PathLike[str]",
    kind: str = "dual", labels: "Iterable[str | PathLike[str]]" = (),
    label_validation: "str | PathLike[str] | None" = None, teacher: str | None = None, start: str | None = None,
    network: str | None = None, shape: Mapping[str, int] = NO_SIZES, mover_rank: str = "",
    boards: Mapping[int, float] = NO_SHARES, rules: Mapping[str, float] = NO_SHARES,
    komi: Mapping[str, float] = NO_SHARES,
    options: TrainOptions | None = None, device: str = "auto", threads: int = 0,
) -> Path:  # fmt: skip
    """Train a network, as ``keima train``; a run that was stopped resumes in its folder.

    A progress bar appears on standard error. Needs torch.

    Args:
        out: folder of the run.
        games: shards of games, or folders of them (:func:`build_data`).
        validation: shard of held-out games to measure on.
        kind: ``"dual"`` (policy and value), ``"policy"`` or ``"value"``, AlphaGo's two networks.
        labels, label_validation: shards of a teacher's labels (``keima data label``), to learn from and to measure on.
        teacher: network, by name or file, that evaluates positions of the games during training.
        start: network to start from; None = random weights.
        network: architecture, such as ``"alphago-zero"``; None = the kind's first.
        shape: sizes of a new network, such as ``{"blocks": 6, "channels": 64}``; others are the architecture's.
        mover_rank: lowest rank of the side to move in positions to learn from; empty = any.
        boards: board size -> share of the steps, such as ``{9: 1, 19: 2}``; empty = as frequent as in the data.
        rules, komi: the teacher's, as rule set or komi (``"usual"``, ``"5.5..9.5"``) -> share; empty = the games'.
        options: steps, batch, rate and so on; None = the defaults of the command.
        device: ``"auto"``, ``"cpu"``, ``"cuda"`` or ``"mps"``.
        threads: CPU threads of torch; 0 = torch's choice.
    Returns:
        the file of the best network so far, ready to play.
    Raises:
        ValueError: a file, the device or an argument cannot be used, or the folder holds another run; one line.
    """
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}, expected one of {', '.join(KINDS)}")
    from engine.nets.devices import imported_torch

    imported_torch("training")
    from engine.go.rules import rules_from
    from engine.nets.architectures.registry import ARCHITECTURES
    from engine.records.sgf_values import read_rank
    from engine.selfplay.game_distribution import read_komi
    from gtp.cli.options import options_from
    from gtp.cli.train import KINDS_OF_NETWORK, TrainingRun

    known = [name for name, one in ARCHITECTURES.items() if one.trained_by == kind]
    if network is not None and network not in known:
        raise ValueError(f"network is {network!r}, expected one of {', '.join(known)} for kind {kind!r}")
    folder, usual = Path(fspath(out)), KINDS_OF_NETWORK[kind]
    run = TrainingRun(
        usual, options or options_from(TrainOptions, usual.defaults), dict(shape), _paths(games),
        read_rank(mover_rank) if mover_rank else None, _paths(labels), Path(fspath(validation)),
        None if label_validation is None else Path(fspath(label_validation)), teacher,
        tuple((rules_from(name), share) for name, share in rules.items()),
        tuple((read_komi(text), share) for text, share in komi.items()), tuple(boards.items()), folder, start,
        network or known[0], device, threads,
    )  # fmt: skip
    run.train()
    return folder / BEST if (folder / BEST).exists() else folder / LATEST


def _paths(given: "Iterable[str | PathLike[str]]") -> tuple[Path, ...]:
    return tuple(Path(fspath(one)) for one in given)
