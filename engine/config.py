"""Every option of the engine, once: name, default, unit, range and one sentence of help.

Options flow from the command line into these frozen dataclasses and from there into constructors; nothing else
holds a default. Unknown keys and values out of range are refused with one line that says what was expected.
"""

import os
from dataclasses import Field, dataclass, field, fields
from typing import Any


def option(
    default: Any, text: str, *, low: float | None = None, high: float | None = None, unit: str = "",
    choices: tuple[str, ...] = (),
) -> Any:  # fmt: skip
    """A dataclass field with its range or choices, unit and help kept as metadata."""
    return field(default=default, metadata={"help": text, "low": low, "high": high, "unit": unit, "choices": choices})


def check(options: Any) -> None:
    """Refuse values outside their declared range.

    Raises:
        ValueError: naming the option, its value and the range.
    """
    for item in fields(options):
        low, high = item.metadata.get("low"), item.metadata.get("high")
        value, choices = getattr(options, item.name), item.metadata.get("choices")
        if choices and value not in choices:
            raise ValueError(f"{item.name} is {value!r}, expected {range_text(item)}")
        # Asked this way round, "not a number" is out of range too.
        if not ((low is None or value >= low) and (high is None or value <= high)):
            raise ValueError(f"{item.name} is {value}, expected {range_text(item)}")


def range_text(item: Field) -> str:
    """The allowed range of a field in words, for messages and help."""
    if choices := item.metadata.get("choices"):
        return f"{', '.join(choices[:-1])} or {choices[-1]}"
    low, high, unit = item.metadata.get("low"), item.metadata.get("high"), item.metadata.get("unit")
    tail = f" {unit}" if unit else ""
    if low is not None and high is not None:
        return f"{low} to {high}{tail}"
    if low is not None:
        return f"{low} or more{tail}"
    if high is not None:
        return f"{high} or less{tail}"
    return f"any value{tail}"


def help_text(item: Field) -> str:
    """An option's help, with what is allowed where that is not everything of its type."""
    is_bounded = any(item.metadata.get(name) not in (None, ()) for name in ("low", "high", "choices"))
    return f"{item.metadata['help']}; {range_text(item)}" if is_bounded else item.metadata["help"]


def core_count() -> int:
    """Processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


REMOVED = {"mercy": "rollouts are played to their end"}
"""Options that were, and what is instead"""


def removed(name: str) -> str:
    """What to tell people who still name an option of earlier versions; empty where it never was one."""
    key = name.replace("-", "_")
    return f"{name} is no option any more: {REMOVED[key]}" if key in REMOVED else ""


@dataclass(frozen=True)
class SetupOptions:
    """Which network plays, where it runs, and on which board by which rules."""

    weights: str = option(
        "default",
        "network: default, another shipped one, a file, a policy and a value network as POLICY+VALUE, or none",
        unit="NAME|PATH",
    )
    device: str = option("auto", "where the network runs: auto, cpu, mps, cuda or cuda:0,cuda:1", unit="DEVICE")
    rules: str = option("chinese", "tromp-taylor, chinese, japanese, korean, aga, ...", unit="NAME")
    komi: float = option(7.5, "White's points, in whole or half points", unit="POINTS")
    size: int = option(19, "board at the start, if the network plays it", low=2, high=25)

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class SessionOptions:
    """What is kept of a conversation; see gtp/log.py."""

    log_file: str = option(
        "", "append all that is said to this file: every line in and out with the time, and standard error", unit="FILE"
    )

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class SearchOptions:
    """How the tree search works; see engine/search."""

    threads: int = option(0, "search worker threads; 0 = chosen for the machine", low=0, high=256)
    evaluators: int = option(
        0, "threads that evaluate the network on the CPU; 0 = as many as search threads were asked for, or one a core",
        low=0, high=256,
    )  # fmt: skip
    batch: int = option(
        0, "most leaves a worker sends to the network at once; 0 = 8 on the CPU, 16 on a GPU", low=0, high=512
    )
    ramp: int = option(
        -1, "visits of the root for which a batch takes one leaf more, up to its most; 0 = its most at once, -1 = 96 "
        "where the CPU evaluates, else 32",
        low=-1, high=10**6,
    )  # fmt: skip
    memory: int = option(1024, "most memory for tree and result cache", low=64, high=1 << 20, unit="MiB")
    c_puct: float = option(0.0, "exploration constant of PUCT; 0 = 1.4 with a network, 5 without", low=0.0, high=20.0)
    c_puct_growth: float = option(
        0.0, "c_puct rises by so much times ln(1 + visits of the node / 500)", low=0.0, high=20.0
    )
    fpu_reduction: float = option(0.2, "how far below its parent an unvisited move is valued", low=0.0, high=2.0)
    score_weight: float = option(
        0.0, "how much a lead in points, beyond the root's, adds to a move's value", low=0.0, high=1.0
    )
    move_choice: str = option(
        "lcb",
        "the move played: the most visited, as always where rollouts alone judge, or the best lower confidence bound",
        choices=("visits", "lcb"),
    )
    gumbel: int = option(
        0, "sequential halving at the root, from so many moves drawn by prior; 0 = PUCT as below", low=0, high=512
    )
    gumbel_noise: float = option(
        0.0, "chance in that draw: 0 = the likeliest moves, to play well; 1 = as published, for games to learn from",
        low=0.0, high=10.0,
    )  # fmt: skip
    transpositions: bool = option(False, "positions that several orders of moves lead to share one node")
    root_noise: float = option(0.0, "share of Dirichlet noise in the root's priors", low=0.0, high=1.0)
    root_symmetries: str = option(
        "auto",
        "symmetries that the root's priors are averaged over; auto = 8 where the policy plays alone, else 1",
        choices=("auto", "1", "8"),
    )
    random_symmetry: bool = option(True, "show every position to the network in a random symmetry")
    policy_temperature: float = option(1.0, "softmax temperature on the network's move logits", low=0.1, high=10.0)
    rollout_weight: float = option(0.0, "lambda: share of rollouts in a leaf's value", low=0.0, high=1.0)
    uniform_rollouts: bool = option(False, "no learnt patterns: random rollouts and, without a network, equal priors")
    placeholder_priors: bool = option(False, "open leaves with the tree policy's priors while the network thinks")
    reply_chance: float = option(0.0, "how often a rollout looks for a remembered reply first", low=0.0, high=1.0)
    virtual_visits: int = option(1, "visits pretended on an edge for each playout under way", low=0, high=100)
    virtual_loss: float = option(
        -1.0,
        "how far below the edge's mean value those are valued, 1 being about a lost game each; -1 = 0.5 on the CPU, 1 "
        "on a GPU, whose batches need more leaves that differ",
        low=-1.0, high=2.0,
    )  # fmt: skip
    virtual_loss_on: str = option(
        "both", "which statistics take virtual losses, if rollouts count", choices=("both", "rollouts")
    )
    async_values: bool = option(
        False, "back rollouts up at once and network values when they come; needs placeholder priors and rollouts"
    )
    expand_after: int = option(
        0, "rollouts through a leaf before the network is asked about it; needs rollouts", low=0, high=10000
    )
    adaptive_expansion: bool = option(False, "raise and lower that number so that the network is just kept busy")
    seed: int = option(
        0, "seed of all randomness: one thread and one seed repeat a search; 0 = another one at each start",
        low=0, high=2**63 - 1,
    )  # fmt: skip

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class PlayOptions:
    """How a move is chosen, timed and when a game is given up; see engine/play/player.py and engine/play/clock.py."""

    visits: int = option(0, "most visits a move; 0 = no limit", low=0, high=10**9)
    seconds: float = option(
        3.0,
        "thinking time a move when no clock was set; 0 = no limit, if visits are limited",
        low=0.0,
        high=86400.0,
        unit="s",
    )
    policy_only: bool = option(False, "play the network's first choice without search")
    temperature: float = option(0.0, "randomness of the move choice in the opening", low=0.0, high=10.0)
    temperature_moves: int = option(30, "moves of the opening that the temperature applies to", low=0, high=1000)
    resign_below: float = option(-0.9, "resign when the win rate value falls below this", low=-1.0, high=1.0)
    resign_count: int = option(3, "consecutive own moves below it before resigning", low=1, high=1000)
    lag: float = option(0.5, "clock time kept back for delays between engine and server", low=0.0, high=60.0, unit="s")
    early_stop: bool = option(True, "end a search as soon as its leading move cannot be overtaken")
    extend_unstable: bool = option(
        True, "under a clock, search up to twice as long while another move looks better or the lead is thin"
    )
    search_summary: bool = option(
        False, "tell on standard error what was found after every move, in Leela Zero's form, which gtp2ogs reads"
    )
    ponder: bool = option(False, "search on in the opponent's time; not without a clock where only visits limit a move")
    ponder_seconds: float = option(600.0, "longest pondering on one move", low=0.1, high=86400.0, unit="s")
    ponder_visits: int = option(
        0, "visits that pondering ends at, with which it is done without a clock too; 0 = no limit", low=0, high=10**9
    )
    live_graphics: bool = option(False, "draw the search on GoGui's board while it runs, by lines on standard error")

    def __post_init__(self) -> None:
        check(self)


@dataclass(frozen=True)
class TrainOptions:
    """How a network is trained, whatever its kind; see engine/train/trainer.py."""

    steps: int = option(20000, "gradient steps of the whole run", low=1, high=10**9)
    batch: int = option(64, "positions of a 19x19 batch, on each process", low=1, high=65536)
    optimizer: str = option("adamw", "how gradients become steps", choices=("adamw", "sgd"))
    momentum: float = option(0.9, "momentum of SGD", low=0.0, high=0.9999)
    rate: float = option(1e-3, "peak learning rate", low=0.0, high=10.0)
    warmup: int = option(300, "steps over which the rate rises to its peak", low=0, high=10**6)
    schedule: str = option(
        "linear",
        "fall of the rate: linear at the end, cosine from the start, halving at intervals, or constant",
        choices=("linear", "cosine", "halving", "constant"),
    )
    decay_share: float = option(0.3, "linear: share of the run at its end that the fall takes", low=0.0, high=1.0)
    halve_every: int = option(100000, "halving: steps between halvings of the rate", low=1, high=10**9)
    weight_decay: float = option(
        -1.0, "weight decay; with SGD an L2 penalty; -1 = 0.02 for AdamW, 1e-4 for SGD", low=-1.0, high=10.0
    )
    clip: float = option(1.0, "gradients are scaled down to this norm; 0 = never", low=0.0, high=1e6)
    ema: float = option(0.999, "decay a step of the averaged weights that are shipped", low=0.0, high=1.0)
    positions_per_game: int = option(
        0, "positions taken from a game, always the same ones, against learning results by heart; 0 = all", low=0
    )
    label_share: float = option(
        0.5, "share of steps on a teacher's labels, when both kinds are given", low=0.0, high=1.0
    )
    teacher_share: float = option(
        0.5, "share of steps on games whose positions the teacher judges, when there is one", low=0.0, high=1.0
    )
    policy_weight: float = option(1.0, "weight of the policy's loss", low=0.0, high=1000.0)
    value_weight: float = option(1.0, "weight of the value's loss", low=0.0, high=1000.0)
    result_weight: float = option(
        0.3, "of that, weight of a game's result against a teacher's value", low=0.0, high=1000.0
    )
    score_weight: float = option(0.5, "weight of the score's loss", low=0.0, high=1000.0)
    ownership_weight: float = option(1.0, "weight of the ownership's loss", low=0.0, high=1000.0)
    value_loss: str = option(
        "cross-entropy", "the value's loss: cross-entropy of won and lost, or mse", choices=("cross-entropy", "mse")
    )
    workers: int = option(1, "threads that prepare batches; they hold no interpreter lock", low=1, high=256)
    minutes: float = option(
        0.0, "stop after so long, the state saved; the run goes on when started again; 0 = no limit", low=0.0, high=1e6
    )
    patience: int = option(0, "validations without a better figure before the run ends; 0 = never", low=0, high=10**6)
    validate_every: int = option(1000, "steps between validations", low=1, high=10**9)
    save_every: int = option(500, "steps between checkpoints", low=1, high=10**9)
    seed: int = option(1, "seed of initial weights and of the order of the data", low=0, high=2**63 - 1)

    def __post_init__(self) -> None:
        check(self)
