"""Small sound files of every kind that the engine reads, to be damaged by :mod:`bench.reliability.mutations`."""

import gzip
import json
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.match.folder import GameRecord
from engine.config import TrainOptions
from engine.features.encoder import ENCODERS, KEIMA
from engine.nets.architectures.registry import new_spec
from engine.nets.files.checkpoint import save_network
from engine.nets.files.leela_zero import save_leela
from engine.nets.model import Model, new_model
from engine.records.final_owners import saved_final_owners
from engine.records.games import COUNTED, Games, write_games
from engine.records.labels import CHINESE_FLAGS, RECORDED, Labels, pack_policy, unpack_policy, write_labels
from engine.records.search_rows import SearchRows, write_search_rows
from engine.train.dataset import Material, Mixture
from engine.train.trainer import Goal, Measure, Trainer
from gtp.cli.settings import KINDS, render
from weights import find_patterns

GAMES, SIZE, LENGTH, ROWS, KEPT = 30, 9, 40, 50, 8
MATCH_SETTINGS: dict[str, Any] = {"size": 9, "rules": "chinese", "komi": 7.5, "time": {"main_s": 60.0}, "first": "a"}


def tiny_model() -> Model:
    """A network of architecture keima-resnet with random weights."""
    torch.manual_seed(1)
    shape = {"planes": KEIMA.planes, "globals": KEIMA.globals, "blocks": 1, "channels": 8, "head_channels": 8}
    return new_model("keima-resnet", shape | {"value_hidden": 8})


def keima_network(path: Path) -> None:
    """Write a network in our format."""
    model = tiny_model()
    save_network(path, model, new_spec(model, "tiny"), {"step": 1, "games": ["a"], "options": {"rate": 0.1}})


def leela_network(path: Path) -> None:
    """Write a network in Leela Zero's format."""
    torch.manual_seed(1)
    shape = {"planes": ENCODERS["zero-17"].planes, "size": 19, "blocks": 1, "channels": 2, "value_hidden": 1}
    model = new_model("alphago-zero", shape)
    save_leela(path.with_suffix(".gz"), model, new_spec(model, "tiny"))
    path.with_suffix(".gz").replace(path)


def katago_network(path: Path) -> None:
    """Write a network in KataGo's format, version 8, with one block."""
    random, content, names = np.random.default_rng(1), bytearray(), iter(range(1, 1000))

    def words(*some: object) -> None:
        content.extend("".join(f"{word}\n" for word in some).encode())

    def layers(*shapes: tuple[int, ...] | str) -> None:
        for shape in shapes:
            words(f"layer{next(names)}")
            if isinstance(shape, str) or len(shape) == 0:
                continue
            if len(shape) == 3:  # a normalisation: channels, and whether it has scale and shift
                words(shape[0], 0.001, *shape[1:])
                shapes_ = [shape[0]] * (2 + sum(shape[1:]))
            else:
                words(*shape, *((1, 1) if len(shape) == 4 else ()))
                shapes_ = [int(np.prod(shape))]
            for count in shapes_:
                content.extend(b"@BIN@" + random.uniform(0.1, 0.5, count).astype("<f4").tobytes() + b"\n")

    words("tiny", 8, 22, 19)
    layers("trunk")
    words(1, 6, 5, 4, 2, 2)
    layers((5, 3, 22, 6), (19, 6))
    words("ordinary_block")
    layers("block", (6, 1, 1), "act", (3, 3, 6, 5), (5, 1, 1), "act", (3, 3, 5, 6))
    layers((6, 1, 1), "act", "policy", (1, 1, 6, 3), (1, 1, 6, 2), (2, 1, 1), "act", (6, 3), (3, 1, 1), "act")
    layers((1, 1, 3, 1), (6, 1))
    layers("value", (1, 1, 6, 3), (3, 1, 1), "act", (9, 5), (5,), "act", (5, 3), (3,), (5, 4), (4,), (1, 1, 3, 1))
    path.write_bytes(gzip.compress(content, 1))


def sgf(path: Path) -> None:
    """Write an SGF file of two games with everything that the reader supports, in two encodings."""
    head = "FF[4]GM[1]CA[{}]SZ[9]KM[6.5]RU[Japanese]PB[柯洁]PW[Cho]DT[2016-03-09]RE[W+0.5]HA[2]TM[3600]"
    moves = (
        "AB[cc][gg]AW[cg]PL[W];W[ee]C[a \\] comment];B[de]LB[aa:1](;W[];B[])(;W[dd](;B[fg])(;B[ff];AE[ee]AB[aa:bb]))"
    )
    games = [f"(;{head.format(name)}{moves})".encode(name) for name in ("utf-8", "gb18030")]
    path.write_bytes(b"\n".join(games))


def settings(path: Path) -> None:
    """Write a settings file that names every option."""
    values = {item.name: item.default for kind in KINDS for item in fields(kind)}
    path.write_text(render(values), encoding="utf-8")


def made_games() -> Games:
    """Games of random distinct points on an almost empty board."""
    random = np.random.default_rng(1)
    moves = np.concatenate([random.permutation(SIZE * SIZE)[:LENGTH] for _ in range(GAMES)]).astype(np.uint16)
    return Games(
        size=np.full(GAMES, SIZE, np.int64),
        komi=np.full(GAMES, 6.5, np.float32),
        offsets=np.arange(GAMES + 1, dtype=np.int64) * LENGTH,
        moves=moves,
        result=np.where(np.arange(GAMES) % 3 == 0, -1, 1).astype(np.int8),
        margin=np.full(GAMES, 3.5, np.float32),
    )


def game_shard(path: Path) -> None:
    """Write a shard of games."""
    write_games(path, made_games())


def made_labels() -> Labels:
    """Random labels of ``ROWS`` positions."""
    random, games = (
        np.random.default_rng(2),
        made_games()._replace(margin=np.full(GAMES, np.nan, np.float32), number=np.arange(GAMES)),
    )
    index, byte = pack_policy(random.dirichlet(np.full(SIZE * SIZE + 1, 0.1), ROWS), KEPT)
    value = random.uniform(-1, 1, ROWS).astype(np.float32)
    return Labels(
        games, random.integers(0, GAMES, ROWS), random.integers(0, LENGTH, ROWS), index, unpack_policy(byte), value,
        10 * value, random.integers(-10, 11, ROWS * SIZE * SIZE).astype(np.int8), np.arange(ROWS + 1) * SIZE * SIZE,
        np.tile(CHINESE_FLAGS, (GAMES, 1)), np.full(GAMES, RECORDED, np.uint8),
    )  # fmt: skip


def label_shard(path: Path) -> None:
    """Write a shard of labels."""
    write_labels(path, made_labels())


def made_rows() -> SearchRows:
    """Self-play rows: random results of two searches in every game of :func:`made_games`."""
    random, area = np.random.default_rng(3), SIZE * SIZE
    games = made_games()._replace(ending=np.full(GAMES, COUNTED, np.uint8), number=np.arange(GAMES))
    return SearchRows(
        games, np.tile(CHINESE_FLAGS, (GAMES, 1)), random.integers(-1, 2, (GAMES, area)).astype(np.int8),
        np.full(GAMES, 1 << 60, np.uint64), np.arange(GAMES), np.zeros(GAMES, np.uint8), np.ones(GAMES, bool),
        random.uniform(-1, 1, (GAMES, 2)).astype(np.float32), np.repeat(np.arange(GAMES), 2),
        np.tile([3, 20], GAMES), random.integers(1, 99, (2 * GAMES, area + 1)).astype(np.uint16),
        random.uniform(-1, 1, 2 * GAMES).astype(np.float32), np.ones(2 * GAMES, np.float32),
    )  # fmt: skip


def row_shard(path: Path) -> None:
    """Write a shard of self-play rows."""
    write_search_rows(path, made_rows())


def patterns(path: Path) -> None:
    """Write the shipped rollout policy."""
    path.write_bytes(find_patterns("rollout").read_bytes())


def final_owners(path: Path) -> None:
    """Write the final owners of :func:`made_games` as a run saves them."""
    saved_final_owners(made_games(), path.parent / "owners")
    next((path.parent / "owners").iterdir()).replace(path)


def new_trainer(folder: Path, steps: int) -> Trainer:
    """A training run of the tiny network on the made games and labels."""
    options = TrainOptions(steps=steps, batch=4, validate_every=2, save_every=2, workers=1)
    model = tiny_model()
    data = Mixture(KEIMA, Material([made_games()], [made_labels()]), options)
    measure = Measure(lambda network: {"top1": 0.5}, Goal("top1", 1))
    return Trainer(model, new_spec(model, "tiny"), data, measure, options, folder, torch.device("cpu"), {})


def run_state(path: Path) -> None:
    """Write the state of a training run after two steps."""
    new_trainer(path.parent / "run", 2).run()
    (path.parent / "run" / "state.safetensors").replace(path)


def match_games(path: Path) -> None:
    """Write the results of a match."""
    record = GameRecord(1, "black", {"first": "a", "second": "b"}, ["E5", "D4", "pass"], 1, "B+3.5", "first", "score")
    record.scores, record.slowest_s = {"first": "B+3.5"}, {"first": 1.5, "second": 0.25}
    lines = [json.dumps(asdict(replace(record, game=number))) + "\n" for number in range(1, 9)]
    path.write_text("".join(lines), encoding="utf-8")


def match_settings(path: Path) -> None:
    """Write the settings of a match."""
    path.write_text(json.dumps(MATCH_SETTINGS, indent=2) + "\n", encoding="utf-8")
