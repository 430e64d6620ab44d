"""Every option of the engine, once: name, default, unit, range and one sentence of help.

Options flow from the command line, the settings file, GTP and benches through :mod:`engine.config.declaration` into
these frozen dataclasses, and from there into constructors; nothing else holds a default. What an option that is left
to the engine stands for is declared here too (``cpu=8, gpu=64``). Whatever is unknown or out of range is refused with
one line that says what was expected.
"""

import os
from dataclasses import dataclass, replace

from engine.config.declaration import Checked, Cores, option

NO_GAIN = "it gained nothing that could be measured (docs/options.md)"
REMOVED = {
    **dict.fromkeys(("c_puct_spread", "fpu_mixed", "noise_pruning", "transpositions"), NO_GAIN),
    "gumbel": "searches choose by PUCT, self-play by Gumbel's way where keima zero says so",
    "gumbel_noise": "searches choose by PUCT, self-play by Gumbel's way where keima zero says so",
    "mercy": "rollouts are played to their end",
    "ramp": "it is visits-per-leaf now",
    "reply_chance": "it is reply-probability now",
}
"""Options that were, and what is instead"""


def removed(name: str) -> str:
    """The answer to an option of earlier versions: what there is instead; empty where it never was one."""
    key = name.replace("-", "_")
    return f"{name} is no option any more: {REMOVED[key]}" if key in REMOVED else ""


@dataclass(frozen=True)
class SetupOptions(Checked):
    """Which network plays, where it runs, and on which board by which rules."""

    heading = "What plays"
    weights: str = option(
        "default",
        "network: default, another shipped one, a file, a policy and a value network as POLICY+VALUE, or none",
        unit="NAME|PATH",
    )
    device: str = option("auto", "where the network runs: auto, cpu, mps, cuda or cuda:0,cuda:1", unit="DEVICE")
    rules: str = option("chinese", "tromp-taylor, chinese, japanese, korean, aga, ... (docs/rules.md)", unit="NAME")
    komi: float = option(7.5, "White's points, in whole or half points", unit="POINTS")
    size: int = option(19, "board at the start, if the network plays it", low=2, high=25)


@dataclass(frozen=True)
class SessionOptions(Checked):
    """How the engine introduces itself, and what is kept of a conversation (gtp/log.py)."""

    heading = "Conversation"
    name: str = option(
        "Keima", "what the command name answers: some clients analyse only with engines that they know by name",
        unit="NAME",
    )  # fmt: skip
    log_file: str = option(
        "", "append the conversation to this file: every line in and out with the time, and standard error", unit="FILE"
    )


@dataclass(frozen=True)
class AlphaGoOptions(Checked):
    """What the search of AlphaGo did and later ones do not: rollouts, and priors before the network's.

    Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", Nature 529 (2016),
    Methods, "Search algorithm" and "Rollout policy".
    """

    heading = "As AlphaGo of 2016 searched"
    rollout_weight: float = option(0.0, "lambda: share of rollouts in a leaf's value", low=0.0, high=1.0)
    patterns: str = option(
        "shipped", "rollout policy and tree policy: the shipped ones, or files as ROLLOUT+TREE", unit="PATH+PATH"
    )
    uniform_rollouts: bool = option(False, "no learnt patterns: random rollouts and, without a network, equal priors")
    placeholder_priors: bool = option(
        False, "open leaves with the tree policy's priors while the network evaluates them"
    )
    async_values: bool = option(
        False, "back rollouts up at once and network values when they come; needs placeholder priors and rollouts"
    )
    expand_after: int = option(
        0, "rollouts through a leaf before the network evaluates it; needs rollouts", low=0, high=10000
    )
    adaptive_expansion: bool = option(False, "raise and lower that number so that the network is just kept busy")
    virtual_loss_on: str = option(
        "both", "which statistics take virtual losses, if rollouts count", choices=("both", "rollouts")
    )
    reply_probability: float = option(
        0.0, "probability that a rollout looks for a last good reply first", low=0.0, high=1.0
    )


@dataclass(frozen=True)
class SearchOptions(AlphaGoOptions):
    """How the tree search works; see engine/search."""

    heading = "Search"
    # On the CPU the network takes nearly all the time and all cores: one worker prepares leaves enough for them. In
    # front of a GPU, and where rollouts are all there is, workers are what computes; a GPU gets two at least, since
    # batches of a single one are not merged.
    threads: int = option(
        0, "search worker threads", low=0, high=256, cpu=1, gpu=Cores(2, 4, spare=1), rollouts=Cores()
    )
    evaluators: int = option(
        0, "threads that evaluate the network on the CPU", low=0, high=256, otherwise=Cores(follows="threads")
    )
    # Larger batches are hardly faster on the CPU. Before a GPU, which merges what waits, leaves that travel together
    # share what Python costs: with 16 a batch, a device that takes 64 in 2 ms idled for 10 to 30% of the time, with 64
    # a batch it gives 90 to 92% of what it could (docs/lab/search-speed.md).
    batch: int = option(0, "most leaves a worker sends to the network at once", low=0, high=512, gpu=64, otherwise=8)
    # With 32, playouts in flight lose some 40 Elo at 200 visits where the CPU evaluates, with 96 nothing; the price is
    # some 10% fewer visits a second in the first 800. See docs/lab/small-searches.md.
    visits_per_leaf: int = option(
        -1, "the batch grows by one leaf per this many root visits; 0 = full batches at once",
        low=-1, high=10**6, cpu=96, otherwise=32,
    )  # fmt: skip
    memory: int = option(1024, "most memory for tree and result cache", low=16, high=1 << 20, unit="MiB")
    # Results of single rollouts are far noisier than a network's values; 2 loses to 4 by 170 Elo, 10 to 5 by 240.
    # KataGo's networks are searched as KataGo searches them: with its g170-b6c96 these three together gain 33 Elo, with
    # our default network they do not (docs/lab/2026-11-27-beside-katago-position-by-position.md).
    c_puct: float = option(
        0.0, "exploration constant of PUCT", low=0.0, high=20.0, katago=1.0, network=1.4, rollouts=5.0
    )
    c_puct_growth: float = option(
        0.0, "c_puct rises by this number times ln(1 + visits of the node / 500)", low=0.0, high=20.0
    )
    fpu_reduction: float = option(0.2, "how far below its parent an unvisited move is valued", low=0.0, high=2.0)
    score_weight: float = option(
        0.0, "how much a lead in points, beyond the root's, adds to a move's value", low=0.0, high=1.0
    )
    value_weight: float = option(
        -1.0, "how much less moves count in the node's value that look worse than it, where only the network gives "
        "values; 0 = as much", low=-1.0, high=10.0, katago=0.25, otherwise=0.0,
    )  # fmt: skip
    value_bias: float = option(
        -1.0, "by which share of what it erred after the same moves in the same place the network's values are "
        "corrected, where only it gives values; 0 = not at all", low=-1.0, high=1.0, katago=0.45, otherwise=0.0,
    )  # fmt: skip
    move_choice: str = option(
        "lcb",
        "the move played: the most visited, as always without a value network, or the best lower confidence bound",
        choices=("visits", "lcb"),
    )
    root_symmetries: str = option(
        "auto", "symmetries that the root's priors are averaged over", choices=("auto", "1", "8"),
        policy_only="8", otherwise="1",
    )  # fmt: skip
    random_symmetry: bool = option(True, "show every position to the network in a random symmetry")
    wide_root_noise: float = option(
        0.0, "widens analyses: they look at more moves than a search for the best one would; moves that are played are "
        "searched without", low=0.0, high=5.0,
    )  # fmt: skip
    root_noise: float = option(0.0, "share of Dirichlet noise in the root's priors", low=0.0, high=1.0)
    policy_temperature: float = option(1.0, "softmax temperature on the network's move logits", low=0.1, high=10.0)
    virtual_visits: int = option(1, "visits added to an edge for each playout in flight", low=0, high=100)
    # With 0, edges with a playout in flight keep their value: playouts meet so often that batches hold five leaves
    # rather than eight, and the CPU searches a third (19x19) to two fifths (9x9) fewer visits a second
    # (docs/lab/small-searches.md). A GPU gets some 85 different leaves of 128 with 1 (one 19x19 middle game), with 0
    # only nine.
    virtual_loss: float = option(
        -1.0, "how far below the edge's mean value a virtual visit is valued, 1 being about a lost game",
        low=-1.0, high=2.0, cpu=0.5, otherwise=1.0,
    )  # fmt: skip
    seed: int = option(
        0, "seed of all randomness: one thread and one seed repeat a search; 0 = another one at each start",
        low=0, high=2**63 - 1,
    )  # fmt: skip

    def seeded(self) -> "SearchOptions":
        """These options, with a seed drawn where they have none."""
        return self if self.seed else replace(self, seed=1 + (int.from_bytes(os.urandom(8), "little") >> 2))


@dataclass(frozen=True)
class PlayOptions(Checked):
    """How a move is chosen, timed and when a game is given up; see engine/play/player.py and engine/play/clock.py."""

    heading = "Thinking time, move choice, resigning"
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
    resign_below: float = option(
        -0.9,
        "resign when the value (-1 to 1; -0.9 = 5% win rate) falls below this, but not in a game's first "
        "moves (a fifth of the board's points, with handicap stones more)",
        low=-1.0,
        high=1.0,
    )
    resign_count: int = option(3, "consecutive own moves below it before resigning", low=1, high=1000)
    lag: float = option(0.5, "clock time kept back for delays between engine and server", low=0.0, high=60.0, unit="s")
    early_stop: bool = option(
        True,
        "where a clock keeps the time for later moves, end a search once its leading move cannot be overtaken, or "
        "after a fifth of its time in a decided game (win rate above 98% or below 2%)",
    )
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
    live_graphics: bool = option(
        False, "draw the running search by GoGui's graphics on standard error; GoGui itself switches it on"
    )


@dataclass(frozen=True)
class TrainOptions(Checked):
    """How a network is trained, whatever its kind; see engine/train/trainer.py."""

    heading = "Training"
    steps: int = option(20000, "gradient steps of the whole run", low=1, high=10**9)
    batch: int = option(64, "positions of a 19x19 batch, on each process", low=1, high=65536)
    optimizer: str = option("adamw", "how gradients become steps", choices=("adamw", "sgd", "muon"))
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
    # SGD's is a penalty added to the clipped gradient, so it must be small beside ``clip``.
    weight_decay: float = option(
        -1.0, "weight decay; with SGD an L2 penalty", low=-1.0, high=10.0, adamw=0.02, muon=0.02, sgd=1e-4
    )
    clip: float = option(1.0, "gradients are scaled down to this norm; 0 = never", low=0.0, high=1e6)
    ema: float = option(0.999, "decay a step of the averaged weights that are shipped", low=0.0, high=1.0)
    positions_per_game: int = option(
        0, "positions taken from a game, always the same ones, against memorising results; 0 = all", low=0
    )
    label_share: float = option(0.5, "share of steps on a teacher's labels, if games are given too", low=0.0, high=1.0)
    reached_share: float = option(
        0.5, "share of positions that searches reached (keima data reached) among those of games of their board size, "
        "if there are others", low=0.0, high=1.0,
    )  # fmt: skip
    decided_weight: float = option(
        1.0, "how often labels of decided positions are drawn, those whose value is beyond 0.95; others have 1",
        low=0.001, high=1.0,
    )  # fmt: skip
    teacher_share: float = option(
        0.5, "share of steps on games whose positions the teacher evaluates, if there is one", low=0.0, high=1.0
    )
    policy_weight: float = option(1.0, "weight of the policy's loss", low=0.0, high=1000.0)
    value_weight: float = option(1.0, "weight of the value's loss", low=0.0, high=1000.0)
    result_weight: float = option(
        0.3, "weight of game results within the value loss; a teacher's value has 1", low=0.0, high=1000.0
    )
    score_weight: float = option(0.5, "weight of the score's loss", low=0.0, high=1000.0)
    ownership_weight: float = option(1.0, "weight of the ownership's loss", low=0.0, high=1000.0)
    reply_weight: float = option(
        0.15, "weight of the loss of the opponent's reply, where a network learns it (KataGo)", low=0.0, high=1000.0
    )
    value_loss: str = option(
        "cross-entropy", "the value's loss: cross-entropy of won and lost, or mse", choices=("cross-entropy", "mse")
    )
    echo: int = option(
        1, "steps on each batch, for where a teacher takes longer than a step: data echoing (Choi et al. 2019)",
        low=1, high=100,
    )  # fmt: skip
    workers: int = option(1, "threads that prepare batches; they hold no interpreter lock", low=1, high=256)
    minutes: float = option(
        0.0,
        "stop after this time, the state saved, to go on when started again; 0 = no limit",
        low=0.0,
        high=1e6,
        unit="min",
    )
    patience: int = option(0, "validations without a better metric before the run ends; 0 = never", low=0, high=10**6)
    validate_every: int = option(1000, "steps between validations", low=1, high=10**9)
    save_every: int = option(500, "steps between checkpoints, if these take less than 20 seconds", low=1, high=10**9)
    seed: int = option(1, "seed of initial weights and of the order of the data", low=0, high=2**63 - 1)
