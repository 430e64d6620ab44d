"""Every option of the engine, once: name, default, unit, range and one sentence of help.

Values from the command line, the settings file, GTP and benches pass through :mod:`engine.config.declaration` into
these frozen dataclasses, and from there into constructors; defaults are declared here alone. So are automatic values
(``cpu=8, gpu=64``). An unknown option or a value out of range is refused with one line that names the range.
"""

import os
from dataclasses import dataclass, replace

from engine.config.declaration import Checked, Cores, machine_mib, option
from engine.config.profiles import checked_profile

FULL, ADAPTIVE = "max", "auto"
"""Values of ``level`` for full strength and for the adaptive opponent"""
RANKS = (*(f"{kyu}k" for kyu in range(20, 0, -1)), *(f"{dan}d" for dan in range(1, 6)))
"""The other values of ``level``; docs/levels.md says on which scale"""
NO_GAIN = "it gained nothing that could be measured (docs/options.md)"
REMOVED = {
    **dict.fromkeys(
        ("c_puct_growth", "c_puct_spread", "fpu_mixed", "noise_pruning", "score_weight", "transpositions"), NO_GAIN
    ),
    **dict.fromkeys(("gumbel", "gumbel_noise"), "searches use PUCT; Gumbel search is an option of keima zero"),
    "mercy": "rollouts are played to the end",
    "halve_every": "use --schedule step with drop-every",
    "ramp": "use visits-per-leaf",
    "reply_chance": "use reply-probability",
}
"""Removed option -> reason, or what replaces it"""


def removed(name: str) -> str:
    """The message about an option that was removed; empty for any other name."""
    key = name.replace("-", "_")
    return f"option {name} was removed: {REMOVED[key]}" if key in REMOVED else ""


@dataclass(frozen=True)
class SetupOptions(Checked):
    """The network, its device, and the board and rules at the start."""

    heading = "Network, board and rules"
    weights: str = option(
        "default",
        "network: a shipped one such as default, a file, a policy and a value network as POLICY+VALUE, or none",
        unit="NAME|PATH",
    )
    human_weights: str = option(
        "", "human network, which the moves are drawn from while the other one searches: a name or a file, such as "
        "KataGo's network of human play (docs/human.md)", unit="NAME|PATH",
    )  # fmt: skip
    device: str = option("auto", "device of the network: auto, cpu, mps, cuda or cuda:0,cuda:1", unit="DEVICE")
    rules: str = option(
        "chinese", "rule set: tromp-taylor, chinese, japanese, korean, aga, ... (docs/rules.md)", unit="NAME"
    )
    komi: float = option(7.5, "komi: White's compensation, in whole or half points", unit="POINTS")
    size: int = option(19, "board size at the start, if the network plays it", low=2, high=25)


@dataclass(frozen=True)
class SessionOptions(Checked):
    """The engine's name, and the log of a conversation (gtp/log.py)."""

    heading = "Client and log"
    name: str = option(
        "Keima", "engine name for clients: some analyse only with engines that they know by name", unit="NAME"
    )
    log_file: str = option(
        "", "log file: every line in and out with its time, and standard error, appended", unit="FILE"
    )


@dataclass(frozen=True)
class AlphaGoOptions(Checked):
    """Parts of AlphaGo's search that later programs lack: rollouts and placeholder priors.

    Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", Nature 529 (2016),
    Methods, "Search algorithm" and "Rollout policy".
    """

    heading = "AlphaGo's search of 2016, with rollouts"
    rollout_weight: float = option(0.0, "lambda: weight of rollouts in a leaf's value", low=0.0, high=1.0)
    patterns: str = option(
        "shipped", "pattern policies: shipped, or two names or files as ROLLOUT+TREE: alphago-9-rollout+alphago-9-tree",
        unit="ROLLOUT+TREE",
    )  # fmt: skip
    uniform_rollouts: bool = option(
        False, "uniform rollout policy instead of patterns, and without a network uniform priors"
    )
    placeholder_priors: bool = option(
        False, "expand leaves with the tree policy's priors while the network evaluates them"
    )
    async_values: bool = option(
        False, "back up rollouts at once and network values later; needs placeholder priors and rollouts"
    )
    expand_after: int = option(
        0, "expansion threshold: rollouts through a leaf before it is expanded; needs rollouts", low=0, high=10000,
    )  # fmt: skip
    adaptive_expansion: bool = option(False, "adapt the expansion threshold to keep the network just busy")
    virtual_loss_on: str = option(
        "both", "statistics that take virtual losses in searches with rollouts", choices=("both", "rollouts")
    )
    reply_probability: float = option(
        0.0, "probability that a rollout tries the last good reply first", low=0.0, high=1.0
    )


@dataclass(frozen=True)
class MachineOptions(Checked):
    """How a search uses the machine; ``keima benchmark`` finds the best numbers of threads and the best batch size."""

    heading = "Speed and memory"
    # On the CPU the network takes nearly all the time and all cores, and one worker prepares enough leaves for them.
    # With a GPU, and with rollouts alone, workers do the computing; a GPU gets at least two, since batches of a single
    # worker are not merged.
    threads: int = option(
        0, "search worker threads", low=0, high=256, cpu=1, gpu=Cores(2, 4, spare=1), rollouts=Cores()
    )
    evaluators: int = option(
        0, "threads that evaluate the network on the CPU", low=0, high=256, otherwise=Cores(follows="threads")
    )
    # Larger batches are hardly faster on the CPU. On a GPU, whose server merges waiting requests, the leaves of a
    # request share its cost in Python: with 16 leaves, a device that takes 64 in 2 ms idled for 10 to 30% of the time;
    # with 64 it reaches 90 to 92% of its throughput (docs/lab/search-speed.md).
    batch: int = option(
        0, "largest batch: leaves that a worker sends to the network at once", low=0, high=512, gpu=64, otherwise=8
    )
    # On the CPU, playouts in flight lose some 40 Elo at 200 visits with 32, none with 96; the price is some 10% fewer
    # visits a second in the first 800. See docs/lab/small-searches.md.
    visits_per_leaf: int = option(
        -1, "visits per extra leaf: root visits after which the batch grows by one leaf; 0 = full batches",
        low=-1, high=10**6, cpu=96, otherwise=32,
    )  # fmt: skip
    # An eighth of a small machine's, since several engines may run on it.
    memory: int = option(
        min(1024, max(256, (machine_mib() or 8192) // 8)),
        "memory of the tree and the result cache", low=16, high=1 << 20, unit="MiB",
    )  # fmt: skip


@dataclass(frozen=True)
class SearchOptions(MachineOptions, AlphaGoOptions):
    """How the tree search works; see engine/search."""

    heading = "Search"
    # Results of single rollouts are far noisier than a network's values; 2 loses to 4 by 170 Elo, 10 to 5 by 240.
    # KataGo's networks are searched with KataGo's values of c_puct, value_weight and value_bias, which together gain 33
    # Elo with its g170-b6c96 and none with our default network
    # (docs/lab/2026-11-27-beside-katago-position-by-position.md).
    c_puct: float = option(
        0.0, "exploration constant of PUCT", low=0.0, high=20.0, katago=1.0, network=1.4, rollouts=5.0
    )
    fpu_reduction: float = option(
        0.2, "first play urgency: value of an unvisited move below its parent's", low=0.0, high=2.0
    )
    fpu_strategy: str = option(
        "reduction", "value of an unvisited move: the parent's less fpu-reduction, or 0, an even game, as in AlphaGo",
        choices=("reduction", "zero"),
    )  # fmt: skip
    value_weight: float = option(
        -1.0, "exponent that down-weights children whose value is far below the best (KataGo's valueWeightExponent), "
        "in searches without rollouts; 0 = off", low=-1.0, high=10.0, katago=0.25, otherwise=0.0,
    )  # fmt: skip
    value_bias: float = option(
        -1.0, "subtree value bias factor (KataGo's subtreeValueBiasFactor), in searches without rollouts; 0 = off",
        low=-1.0, high=1.0, katago=0.45, otherwise=0.0,
    )  # fmt: skip
    move_choice: str = option(
        "lcb",
        "move selection: most visits, or with a value network the best lower confidence bound",
        choices=("visits", "lcb"),
    )
    root_symmetries: str = option(
        "auto", "symmetries that the root's priors are averaged over", choices=("auto", "1", "8"),
        policy_only="8", otherwise="1",
    )  # fmt: skip
    random_symmetry: bool = option(True, "evaluate every position in a random symmetry")
    wide_root_noise: float = option(
        0.0, "root noise that makes analyses explore more moves; searches for a move to play have none",
        low=0.0, high=5.0,
    )  # fmt: skip
    root_noise: float = option(0.0, "weight of Dirichlet noise in the root's priors", low=0.0, high=1.0)
    policy_temperature: float = option(1.0, "softmax temperature of the network's policy logits", low=0.1, high=10.0)
    virtual_visits: int = option(
        1, "virtual visits: visits added to an edge for each playout in flight", low=0, high=100
    )
    # With 0, edges with a playout in flight keep their value, and playouts collide so often that batches have five
    # leaves instead of eight: a third (19x19) to two fifths (9x9) fewer visits a second on the CPU
    # (docs/lab/small-searches.md). On a GPU, 128 playouts in flight have some 85 different leaves with 1, nine with 0
    # (one 19x19 middle game).
    virtual_loss: float = option(
        -1.0, "virtual loss: value of a virtual visit below the edge's mean; 1 is about a lost game",
        low=-1.0, high=2.0, cpu=0.5, otherwise=1.0,
    )  # fmt: skip
    human_profile: str = option(
        "", "human profile that KataGo's network of human play imitates: rank_20k to rank_9d, preaz_20k to preaz_9d, "
        "or proyear_1800 to proyear_2023 (docs/human.md); empty = rank_9d", unit="PROFILE", read=checked_profile,
    )  # fmt: skip
    seed: int = option(
        0, "random seed: one thread and one seed repeat a search; 0 = a new seed at each start",
        low=0, high=2**63 - 1,
    )  # fmt: skip

    def seeded(self) -> "SearchOptions":
        """These options, with a random seed if ``seed`` is 0."""
        return self if self.seed else replace(self, seed=1 + (int.from_bytes(os.urandom(8), "little") >> 2))


@dataclass(frozen=True)
class HumanOptions(Checked):
    """How moves are drawn with a human network beside the main one; see engine/play/human.py for the formulas.

    Defaults of KataGo's gtp_human5k_example.cfg.
    """

    heading = "Moves of a human network"
    human_share: float = option(
        1.0, "share of the human policy in the choice of a move (KataGo's humanSLChosenMoveProp)", low=0.0, high=1.0
    )
    human_ignore_pass: bool = option(True, "leave passing to the search (KataGo's humanSLChosenMoveIgnorePass)")
    human_lambda: float = option(
        1e8, "loss of utility that divides the probability of a searched move by e (KataGo's "
        "humanSLChosenMovePiklLambda); 1e8 = no effect", low=0.001, high=1e9,
    )  # fmt: skip
    human_score_utility: float = option(
        0.3, "weight of the score in the utility of a move (KataGo's staticScoreUtilityFactor)", low=0.0, high=1.0
    )
    human_explore: float = option(
        0.0, "share of a move's visits for likely human moves, which do not count in the position's value (KataGo's "
        "humanSLRootExploreProbWeightless)", low=0.0, high=0.95,
    )  # fmt: skip
    human_c_puct: float = option(
        0.5,
        "exploration constant of the visits for human moves (KataGo's humanSLCpuctExploration)",
        low=0.0,
        high=1000.0,
    )
    human_c_permanent: float = option(
        0.2,
        "addition to human-c-puct, times the square root of the visits (KataGo's humanSLCpuctPermanent)",
        low=0.0,
        high=1000.0,
    )
    human_temperature_early: float = option(
        0.85, "temperature of the move choice at the start (KataGo's chosenMoveTemperatureEarly)", low=0.0, high=5.0
    )
    human_temperature: float = option(
        0.7, "temperature of the move choice late in the game (KataGo's chosenMoveTemperature)", low=0.0, high=5.0
    )
    human_halflife: float = option(
        80.0, "half-life of the difference between the two temperatures, in moves on 19x19 (KataGo's "
        "chosenMoveTemperatureHalflife)", low=0.1, high=100000.0,
    )  # fmt: skip
    human_only_below: float = option(
        0.01, "probability below which the temperature has an effect (KataGo's chosenMoveTemperatureOnlyBelowProb)",
        low=0.0, high=1.0,
    )  # fmt: skip


@dataclass(frozen=True)
class PlayOptions(HumanOptions):
    """Limits of a move, its choice, the clock and resigning; see engine/play/player.py and engine/play/clock.py."""

    heading = "Thinking time, move choice, resigning, pondering"
    visits: int = option(
        0, "visits a move; without --seconds they lift the limit of seconds; 0 = no limit", low=0, high=10**9
    )
    seconds: float = option(
        3.0, "thinking time a move without a clock; 0 = no limit, if visits are limited",
        low=0.0, high=86400.0, unit="s",
    )  # fmt: skip
    level: str = option(
        FULL, f"level of play: a rank from {RANKS[0]} to {RANKS[-1]} on the scale of docs/levels.md, auto to go up or "
        "down a rank by results, max for full strength; below max the level sets visits and seconds",
        unit="LEVEL", choices=(*RANKS, FULL, ADAPTIVE),
    )  # fmt: skip
    policy_only: bool = option(False, "play the policy's best move without search")
    temperature: float = option(0.0, "temperature of the move choice in the opening", low=0.0, high=10.0)
    temperature_moves: int = option(30, "length of the opening for the temperature, in moves", low=0, high=1000)
    resign_below: float = option(
        -0.9,
        "value to resign below (-1 to 1; -0.9 = 5% win rate), but not in a game's first moves (a fifth of the board's "
        "points, with handicap stones more)", low=-1.0, high=1.0,
    )  # fmt: skip
    resign_count: int = option(
        3, "consecutive own moves below the resignation value before resigning", low=1, high=1000
    )
    lag: float = option(0.5, "clock time reserved for delays between engine and server", low=0.0, high=60.0, unit="s")
    early_stop: bool = option(
        True,
        "stop a search once no move can overtake the leading one, or after a fifth of its time in a decided game (win "
        "rate above 98% or below 2%), under clocks that keep the time for later moves",
    )
    extend_unstable: bool = option(
        True, "search up to twice as long under a clock while another move looks better or the lead is thin"
    )
    search_summary: bool = option(
        False, "write a summary of each search to standard error, in Leela Zero's format, which gtp2ogs reads"
    )
    ponder: bool = option(False, "ponder: search in the opponent's time; without a clock only if seconds limit a move")
    ponder_seconds: float = option(600.0, "longest time to ponder a move", low=0.1, high=86400.0, unit="s")
    ponder_visits: int = option(
        0, "visits limit of pondering, which also allows pondering without a clock; 0 = no limit", low=0, high=10**9
    )
    live_graphics: bool | None = option(
        None, "live graphics: draw running searches on GoGui's board; if neither is given, GoGui switches them on"
    )


@dataclass(frozen=True)
class TrainOptions(Checked):
    """Training of every kind of network; see engine/train/trainer.py."""

    heading = "Training"
    steps: int = option(20000, "number of gradient steps", low=1, high=10**9)
    batch: int = option(64, "batch size, in positions, of each process", low=1, high=65536)
    optimizer: str = option("adamw", "optimizer", choices=("adamw", "sgd", "muon"))
    momentum: float = option(0.9, "momentum of SGD", low=0.0, high=0.9999)
    rate: float = option(1e-3, "peak learning rate", low=0.0, high=10.0)
    warmup: int = option(300, "warmup: steps until the learning rate reaches its peak", low=0, high=10**6)
    schedule: str = option(
        "linear",
        "learning rate schedule: linear decay at the end, cosine decay, step decay, or constant",
        choices=("linear", "cosine", "step", "constant"),
    )
    decay_share: float = option(0.3, "linear schedule: share of the run at its end with decay", low=0.0, high=1.0)
    drop_factor: float = option(
        0.5, "step schedule: factor of the learning rate at each drop; AlphaGo 0.5, AlphaGo Zero 0.1", low=0.0, high=1.0
    )
    drop_every: int = option(
        100000, "step schedule: steps between drops of the learning rate; AlphaGo 80000000", low=1, high=10**9
    )
    drop_at: tuple[int, ...] = option(
        (), "step schedule: step of a drop, in place of --drop-every; repeatable; AlphaGo Zero 400000 and 600000",
        low=1, high=10**9,
    )  # fmt: skip
    # With SGD an L2 penalty added to the clipped gradient, so it must be small compared with ``clip``.
    weight_decay: float = option(
        -1.0, "weight decay; with SGD an L2 penalty", low=-1.0, high=10.0, adamw=0.02, muon=0.02, sgd=1e-4
    )
    clip: float = option(1.0, "gradient clipping: largest norm; 0 = off", low=0.0, high=1e6)
    ema: float = option(
        0.999, "decay a step of the moving average of the weights, which become the trained network", low=0.0, high=1.0
    )
    positions_per_game: int = option(
        0, "number of positions used of each game, always the same ones, against memorising results; 0 = all", low=0
    )
    label_share: float = option(0.5, "share of steps on labels, if games are given too", low=0.0, high=1.0)
    reached_share: float = option(
        0.5, "share of positions of searches (keima data reached) among positions from games of their board size",
        low=0.0, high=1.0,
    )  # fmt: skip
    decided_weight: float = option(
        1.0, "sampling weight of labels of decided positions (value beyond 0.95); others have 1",
        low=0.001, high=1.0,
    )  # fmt: skip
    teacher_share: float = option(
        0.5, "share of steps on games that the teacher evaluates, if there is a teacher", low=0.0, high=1.0
    )
    teacher_symmetries: str = option(
        "1", "symmetries that a teacher's outputs are averaged over; 1 = the position's own", choices=("1", "8")
    )
    policy_weight: float = option(1.0, "weight of the policy loss", low=0.0, high=1000.0)
    value_weight: float = option(1.0, "weight of the value loss", low=0.0, high=1000.0)
    result_weight: float = option(
        0.3, "weight of game results in the value loss; a teacher's value has 1", low=0.0, high=1000.0
    )
    score_weight: float = option(0.5, "weight of the score loss", low=0.0, high=1000.0)
    ownership_weight: float = option(1.0, "weight of the ownership loss", low=0.0, high=1000.0)
    reply_weight: float = option(
        0.15, "weight of the opponent policy loss, for networks with that head (KataGo)", low=0.0, high=1000.0
    )
    value_loss: str = option(
        "cross-entropy", "value loss: cross-entropy of won and lost, or mse", choices=("cross-entropy", "mse")
    )
    echo: int = option(
        1, "data echoing (Choi et al. 2019): steps on each batch, if a teacher takes longer than a step",
        low=1, high=100,
    )  # fmt: skip
    workers: int = option(1, "threads that prepare batches", low=1, high=256)
    minutes: float = option(
        0.0, "time limit, after which the run is saved to resume later; 0 = no limit", low=0.0, high=1e6, unit="min"
    )
    patience: int = option(0, "early stopping: validations without a better metric; 0 = off", low=0, high=10**6)
    validate_every: int = option(1000, "steps between validations", low=1, high=10**9)
    save_every: int = option(500, "steps between checkpoints; also one every 20 seconds", low=1, high=10**9)
    seed: int = option(1, "random seed of the initial weights and of the order of the data", low=0, high=2**63 - 1)
