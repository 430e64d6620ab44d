"""Pattern policies as files and as tables for rollouts and searches.

A file is a compressed NumPy ``.npz``: the arrays of :class:`engine.rollout.vocabulary.Vocabulary` as differences
of successive patterns, ``theta`` float16[weights], and ``header``, UTF-8 bytes of a JSON object with ``format``,
``kind`` ("rollout" or "tree") and ``record``, the record of the training.
"""

import functools
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from engine.rollout.patterns import ADJACENT, SQUARE
from engine.rollout.policy import FACTOR_BITS, MOST_FACTOR, Tables
from engine.rollout.vocabulary import (
    CELL_BITS,
    CORNER_NEIGHBOUR,
    EDGE_NEIGHBOUR,
    FIRST_CELL,
    N_CELLS,
    RESPONSE,
    SAVE,
    Numbers,
    Vocabulary,
    hash_table,
    unfold,
)
from engine.system.files import Known, read_arrays, written_whole

FORMAT = "keima-patterns-1"
ARRAYS = ("fine", "coarse", "answers", "nakade", "diamonds")
"""Names in a file of the fields of a Vocabulary, in their order"""
BITS = (24, 24, 42, 13, 36)
"""Number of bits of a pattern in each array of ``ARRAYS``"""
KNOWN: Known = {"header": ("u1", (None,)), "theta": ("f2", (None,)), **dict.fromkeys(ARRAYS, ("i8", (None,)))}
LARGEST = 1 << 24
"""Largest static weight; weights are scaled so that the median over known patterns is STATIC_UNIT"""
STATIC_UNIT = 1 << 12

NEAR = {cell: EDGE_NEIGHBOUR if cell in ADJACENT else CORNER_NEIGHBOUR for cell in range(len(SQUARE))}
"""Index of a cell in the 3x3 code around the last move -> single feature of a move in this cell"""


class PatternModel(NamedTuple):
    """A trained pattern policy, either a rollout policy or a tree policy."""

    words: Vocabulary
    theta: np.ndarray
    """float32[weights], in the order of :mod:`engine.rollout.vocabulary`"""
    record: dict[str, Any]
    """settings and results of the training"""

    @property
    def kind(self) -> str:
        """``tree`` or ``rollout``."""
        return "tree" if self.words.is_tree else "rollout"

    def at(self, temperature: float) -> "PatternModel":
        """A copy of the policy with weights divided by a temperature; the record of the copy names the temperature."""
        return self._replace(
            theta=self.theta / np.float32(temperature), record=self.record | {"temperature": temperature}
        )


def save_patterns(path: Path, model: PatternModel) -> None:
    """Write a pattern policy to a file, atomically."""
    header = json.dumps({"format": FORMAT, "kind": model.kind, "record": model.record}).encode()
    arrays: dict[str, Any] = {name: np.diff(words, prepend=0) for name, words in zip(ARRAYS, model.words, strict=True)}
    with written_whole(path) as part, part.open("wb") as file:
        np.savez_compressed(
            file, header=np.frombuffer(header, np.uint8), theta=model.theta.astype(np.float16), **arrays
        )


def load_patterns(path: Path) -> PatternModel:
    """Read a pattern policy from a file.

    Raises:
        ValueError: unreadable, damaged or of another format; the message is one line that names the file.
    """
    try:
        arrays = read_arrays(path, KNOWN)
        header = json.loads(arrays["header"].tobytes())
        if header["format"] != FORMAT:
            raise ValueError(f"format {str(header['format'])[:40]!r}, expected {FORMAT!r}")
        words = Vocabulary(*(np.cumsum(arrays[name], dtype=np.int64) for name in ARRAYS))
        for name, patterns, bits in zip(ARRAYS, words, BITS, strict=True):
            if len(patterns) and (patterns[0] < 0 or patterns[-1] >> bits or (np.diff(patterns) <= 0).any()):
                raise ValueError(f"an invalid pattern in {name}")
        if (words.responses % (1 << CELL_BITS) >= N_CELLS).any():
            raise ValueError("a response outside the diamond")
        theta, record = arrays["theta"].astype(np.float32), header["record"]
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(f"{path}: not a readable pattern policy ({error})") from error
    if len(theta) != words.starts[-1] or not np.isfinite(theta).all():
        raise ValueError(f"{path}: not a readable pattern policy (weights do not fit its patterns)")
    return PatternModel(words, theta, record)


class Patterns(NamedTuple):
    """The rollout policy and the tree policy in the form that a search uses."""

    tables: Tables
    numbers: Numbers
    """the unfolded vocabulary of the tree policy"""
    theta: np.ndarray
    """float32[weights]: weights of the tree policy"""


def load_rollout(path: Path) -> Tables:
    """Read a rollout policy; cached, so :func:`load_both` does not read the file again.

    Raises:
        ValueError: the file cannot be used; the message is one line that names it.
    """
    return _load_rollout(path)[0]


@functools.cache
def load_both(rollout: Path, tree: Path) -> Patterns:
    """Read the rollout policy and the tree policy of a search; cached and never changed, so all searches of a process
    share them.

    Raises:
        ValueError: a file cannot be used; the message is one line that names it.
    """
    tables, words = _load_rollout(rollout)
    full = _load_kind(tree, "tree")
    return Patterns(tables, unfold(full.words, (words, tables.square)), full.theta)


@functools.cache
def _load_rollout(path: Path) -> tuple[Tables, Vocabulary]:
    """Tables of a rollout policy, and its vocabulary; cached."""
    model = _load_kind(path, "rollout")
    return rollout_tables(model), model.words


def _load_kind(path: Path, kind: str) -> PatternModel:
    """Read a policy of a kind, "rollout" or "tree"; raises ValueError if the file is of the other kind."""
    model = load_patterns(path)
    if model.kind != kind:
        raise ValueError(f"{path}: a {model.kind} policy, expected a {kind} policy")
    return model


def rollout_tables(model: PatternModel) -> Tables:
    """The integer weights and factors of a rollout policy."""
    numbers = unfold(model.words)
    padded = np.append(model.theta, np.float32(0.0)).astype(np.float64)  # Place -1 has weight 0.
    scores = padded[numbers.square_places].sum(axis=1)
    static = np.clip(np.rint(STATIC_UNIT * np.exp(scores - np.median(scores[1:]))), 1, LARGEST)
    static[0] = 0
    single = padded[numbers.single : -1]
    near = np.array([single[NEAR[cell]] if cell in NEAR else 0.0 for cell in range(N_CELLS)])
    known = np.flatnonzero(numbers.contexts.keys[:-1, 0] >= 0)
    responses = numbers.contexts.values[known, FIRST_CELL:]
    contexts = hash_table(
        numbers.contexts.keys[known, 0],
        _factors(near + padded[responses] + np.where(responses >= 0, single[RESPONSE], 0.0)),
        _factors(near),
        FIRST_CELL + N_CELLS,
    )
    return Tables(
        numbers.square,
        static.astype(np.int32),
        contexts,
        _factors(padded[numbers.nakade]),
        _factors(single[SAVE : SAVE + 1]),
    )


def _factors(scores: np.ndarray) -> np.ndarray:
    """Exponentials of scores, uint16 in units of ``2**-FACTOR_BITS``, clamped to MOST_FACTOR."""
    return np.minimum(np.rint(np.exp(np.minimum(scores, 20.0)) * (1 << FACTOR_BITS)), MOST_FACTOR).astype(np.uint16)
