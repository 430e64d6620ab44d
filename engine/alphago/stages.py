"""The stages of ``keima alphago`` as data: their products, ``keima`` commands and sizes.

    OUT/games/     games of the shipped network (played), or human games, as shards to train on (set)
    OUT/sl/        the policy network of supervised learning
    OUT/patterns/  rollout policy and tree policy
    OUT/rl/        the policy network of reinforcement learning, and its games against the SL policy
    OUT/values/    positions for the value network, from games that the SL and RL policies play: one per game, to train
                   on (train), to select the training step (selection) and to report errors (test); and as many
                   training positions from whole games (whole)
    OUT/value/     the value network
    OUT/value-whole/   a value network trained on whole games, for comparison
    OUT/ablation/  matches between players that lack some components

Commands run in OUT, so their text does not depend on OUT; each can resume. Start at :meth:`Plan.stages`.
"""

import json
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from engine.records.archive import disk_bytes
from engine.system.programs import PROGRAM, find_gnugo, gnugo, keima

SL, RL = "sl/network.safetensors", "rl/network.safetensors"
VALUE, VALUE_WHOLE = "value/best.safetensors", "value-whole/best.safetensors"
"""Value networks trained on one position per game and on whole games: the weights of the training step with the lowest
error on :data:`SELECTION`"""
EVALUATION = "value/evaluation.json"
PATTERNS = ROLLOUT, TREE = "patterns/rollout.npz", "patterns/tree.npz"
VALIDATION = "games/set/validation.npz.xz"
"""Games held out from supervised learning, for validation"""
TEST, SELECTION = "values/test/games-00000.npz.xz", "values/selection/games-00000.npz.xz"
"""Positions held out from the value network's training, one set to report its error and one to select its training
step; on the latter the error is the minimum of many, which is a biased estimate"""
VALUE_KINDS = (
    ("one_a_game", VALUE, "values/train", ""),
    ("whole_games", VALUE_WHOLE, "values/whole", " --positions-per-game 0"),
)
"""Value networks by kind of training data: name of the kind, network file, folder of the data, further options"""
GNUGO_LEVEL = 10
SHIPPED_SIZES = range(7, 20)
"""Board sizes that the shipped network supports"""
SHARPER = " --temperature 0.5"
"""Option that sharpens a rollout policy trained on moves drawn from a network: they are too flat for rollouts"""
OPENING_MOVES = 8
"""Number of first moves that the SL policy draws in games between greedy policies, which would be the same otherwise"""
BATCH = "--batch"
"""Option of training commands: positions in a training step of each process"""
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
"""Beginning of a torchrun command; the number of processes follows"""


@dataclass(frozen=True)
class Preset:
    """Board, networks and amounts of work of all stages. Strings are command-line options of the stage they name."""

    size: int
    komi: float
    filters: int
    """filters per layer of the policy networks"""
    value_filters: int
    min_rank: str
    """lowest rank of either player of human games; empty = any"""
    games: int
    """number of games that the shipped network plays to train on, if no human games are given"""
    train: str
    """options of supervised and value training: optimizer, learning rate, batch size"""
    sl: str
    rl: str
    decisive: int
    """number of games of the RL policy against the SL policy, both sampling; a tenth as many are played greedily"""
    positions: int
    """number of training positions for the value network, one per game"""
    held_out: int
    """number of held-out positions for the value network, half to select the step and half for the test"""
    value: str
    rolled_out: int
    """number of test positions on which the value network is compared with rollouts"""
    seconds: float
    """thinking time per move in the ablation, in seconds"""
    pair_games: int
    """number of games of neighbours in the ablation"""


# Plain networks of 13 and 15 layers need this SGD; faster optimizers do not converge.
OWN_SGD = "--optimizer sgd --momentum 0.9 --warmup 500 --schedule cosine --rate 0.01 --batch"
PRESETS = {
    "tour": Preset(
        size=7, komi=9.0, filters=24, value_filters=24, min_rank="", games=1_500, train=f"{OWN_SGD} 64",
        sl="--steps 1200 --validate-every 300",
        rl="--updates 60 --rate 1e-3 --games 64 --pool-every 20 --check-every 30 --check-games 100",
        decisive=600, positions=6_000, held_out=600, value="--steps 600 --validate-every 150", rolled_out=16,
        seconds=0.1, pair_games=4,
    ),
    # With 32 filters of the value network, half a million positions and 20,000 steps its error is larger by 0.01 to
    # 0.02, in training too. A rate of 1e-3 undoes the RL policy: after 60 updates the greedy player wins 25% of its
    # games against the start, at 3e-4 51%. The reward for entropy keeps it from falling by a half in these 60 updates.
    "evening": Preset(
        size=9, komi=7.5, filters=32, value_filters=64, min_rank="", games=30_000, train=f"{OWN_SGD} 128",
        sl="--steps 60000 --validate-every 3000",
        rl="--updates 1500 --rate 7e-5 --entropy 0.01 --pool-every 100 --check-every 100 --check-games 400",
        decisive=4_000, positions=300_000, held_out=20_000, value="--steps 36000 --validate-every 2000",
        rolled_out=600, seconds=0.3, pair_games=100,
    ),
    # The paper's steps have 16 and 32 positions; these have 256, and see as many positions. The paper names no rate of
    # the RL policy. Games have five times the moves of 9x9, and gradients grow with them: at 1e-3 weights became NaN
    # after 20 small mini-batches. 1e-5 is a guess from the evening's rate.
    "published": Preset(
        size=19, komi=7.5, filters=192, value_filters=192, min_rank="6d", games=160_000,
        train="--optimizer sgd --momentum 0 --rate 0.01 --warmup 2000 --schedule step --drop-every 5000000 "
        "--batch 256 --workers 4 --validate-every 10000",
        sl="--steps 21250000", rl="--updates 10000 --rate 1e-5 --games 128 --pool-every 500",
        decisive=4_000, positions=30_000_000, held_out=100_000, value="--steps 6250000", rolled_out=2_000,
        seconds=5.0, pair_games=100,
    ),
    # Steps, rates and batches of the paper's Methods; the paper has 50 GPUs learn asynchronously.
    "paper": Preset(
        size=19, komi=7.5, filters=192, value_filters=192, min_rank="6d", games=160_000,
        train="--optimizer sgd --momentum 0 --rate 0.003 --warmup 0 --schedule step --drop-every 80000000 "
        "--batch 16 --weight-decay 0 --clip 0 --ema 0 --workers 4 --validate-every 100000",
        sl="--steps 340000000", rl="--updates 10000 --rate 1e-5 --games 128 --pool-every 500",
        decisive=4_000, positions=30_000_000, held_out=100_000, value="--steps 50000000 --batch 32", rolled_out=2_000,
        seconds=5.0, pair_games=100,
    ),
}  # fmt: skip
OF_SIZES = {7: "tour", 9: "evening", 19: "published"}
"""Names of the presets by board size, for ``--size`` without ``--preset``"""


def chosen(name: str | None, size: int | None) -> Preset:
    """The preset called ``name`` or, without one, that of the board size (default 9); ``size`` replaces its board size.

    Raises:
        ValueError: no name is given, and no preset is for this board size; one line.
    """
    if name is None:
        if size not in (None, *OF_SIZES):
            raise ValueError(f"no preset is for {size}x{size}: choose one with --preset, {', '.join(PRESETS)}")
        name = OF_SIZES[size or 9]
    return replace(PRESETS[name], size=size or PRESETS[name].size)


class Command(NamedTuple):
    """A ``keima`` command, which runs in the folder of the plan."""

    makes: str
    """path of the product in the plan's folder; while it is missing, the command counts as unfinished"""
    text: str
    """the command line without ``keima``"""
    is_shared: bool = False
    """whether several processes of torchrun may share the command's work"""

    @property
    def prints(self) -> bool:
        """Whether the product is the command's standard output."""
        return self.text.endswith(f" > {self.makes}")

    @property
    def words(self) -> list[str]:
        """The words of ``text``, without the redirection of standard output."""
        return shlex.split(self.text.removesuffix(f" > {self.makes}"))

    def arguments(self, processes: int = 1) -> list[str]:
        """The command line of a child process.

        Args:
            processes: number of processes on this machine that share the command, if it can be shared.
        Raises:
            ValueError: a batch cannot be divided equally among the processes; one line.
        """
        words = self.words
        if processes == 1 or not self.is_shared:
            return keima(*words)
        if BATCH in words:
            at = words.index(BATCH) + 1
            each, rest = divmod(int(words[at]), processes)
            if rest:
                raise ValueError(f"--processes {processes}: cannot divide batches of {words[at]} positions equally")
            words[at] = str(each)
        return [*TORCHRUN, str(processes), "--no-python", "--", *keima(*words)]


class Stage(NamedTuple):
    """A stage of the run: commands that run one by one or, if all are matches, in parallel."""

    name: str
    what: str
    share: float
    """approximate share of the run's total time"""
    commands: tuple[Command, ...]
    games: int = 0
    """number of games of all commands if these are matches, which run in parallel, each on one core; 0 = no matches"""


SEARCH: dict[str, float | str | bool] = {
    "rollout-weight": 0.5,
    "c-puct": 5.0,
    "policy-temperature": 0.67,
    "virtual-visits": 3,
    "virtual-loss": 1.0,
    "virtual-loss-on": "rollouts",
    "fpu-strategy": "zero",
    "expand-after": 40,
    "adaptive-expansion": True,
    "placeholder-priors": True,
    "async-values": True,
    "reply-probability": 0.9,
    "move-choice": "visits",
}
"""Settings of the search as published: Extended Data Table 5, and Methods, "Searching with policy and value networks"
and "Rollout policy", which calls the probability of a reply high"""
RESIGNATION = {"resign-below": -0.8, "resign-count": 1}
"""Settings of resignation as published: once the estimate of winning is below 10%"""


def as_toml(settings: Mapping[str, float | str | bool]) -> str:
    """Settings as lines of a settings file."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items())


def as_arguments(settings: Mapping[str, float | str | bool]) -> str:
    """Settings, none of them False, as command-line options with a space before each."""
    return "".join(f" --{name}" if value is True else f" --{name} {value}" for name, value in settings.items())


class Player(NamedTuple):
    """A player of the ablation, as in the paper's Extended Data Table 7. All search with :data:`SEARCH`."""

    name: str
    parts: str
    paper_elo: int
    weights: str
    rollout_weight: float = 0.0
    """lambda"""

    def options(self) -> str:
        """Command-line options of its search."""
        if self.name == NO_SEARCH:
            return " --policy-only"
        return as_arguments(SEARCH | {"rollout-weight": self.rollout_weight})


NO_SEARCH = "p"
"""Name of the player without a search"""
PLAYERS = (
    Player("rvp", "policy, value, rollouts; lambda 0.5", 2890, f"{SL}+{VALUE}", 0.5),
    Player("rp", "policy, rollouts; lambda 1", 2416, SL, 1.0),
    Player("vp", "policy, value; lambda 0", 2177, f"{SL}+{VALUE}"),
    Player("rv", "tree policy, value, rollouts; lambda 0.5", 2077, VALUE, 0.5),
    Player("v", "tree policy, value; lambda 0", 1655, VALUE),
    Player(NO_SEARCH, "policy, no search", 1517, SL),
    Player("r", "tree policy, rollouts; lambda 1", 1457, "none", 1.0),
)
"""Players of the ablation, the strongest in the paper first; each plays a match against its neighbours in this list,
and one of half as many games against the first"""


@dataclass(frozen=True)
class Plan:
    """A run of ``keima alphago``: its folder and options."""

    out: Path
    preset: Preset
    people: tuple[Path, ...]
    """files or folders of human games to train on; empty = games that the shipped network plays"""
    device: str
    seed: int
    mover_rank: str = ""
    """lowest rank of the side to move in positions that the SL policy learns; empty = any"""

    def stages(self) -> tuple[Stage, ...]:
        """All stages in order."""
        matches = tuple(self._ablation())
        games = sum(games for _, games in self._pairs())
        return (
            Stage("games", "training games", 0.05, tuple(self._games())),
            Stage("sl", "the policy network, by supervised learning", 0.1, tuple(self._supervised())),
            Stage("patterns", "rollout policy and tree policy", 0.02, tuple(self._patterns())),
            Stage("rl", "the policy network, by reinforcement learning", 0.23, tuple(self._reinforced())),
            Stage("values", "positions for the value network", 0.2, tuple(self._value_data())),
            Stage("value", "the value network", 0.2, tuple(self._value_networks())),
            Stage("ablation", "players that lack some components", 0.2, matches, games),
        )  # fmt: skip

    def key(self, command: Command) -> str:
        """Key of a command in ``alphago.json``, independent of the paths of games and programs and of the device."""
        text = " ".join(("keima", *command.words)).replace(shlex.join(PROGRAM), "keima")
        text = text.replace(f"--device {self.device}", "--device DEVICE")
        for path in self.people:
            text = text.replace(str(path.resolve()), f"{path.resolve().name}, {disk_bytes(path)} bytes")
        program = find_gnugo()
        return text.replace(shlex.quote(program), "gnugo") if program else text

    @property
    def _board(self) -> str:
        return f"--size {self.preset.size} --komi {self.preset.komi:g}"

    @property
    def _bulk(self) -> str:
        return f"{self._board} --device {self.device}"

    def _play(self, players: str, out: str, games: int, seed: int = 1, more: str = "") -> Command:
        """The command that plays bulk games of policies, without search."""
        bulk = f"{self._bulk} --games {games}{more} --seed {self.seed + seed}"
        return Command(out, f"data play {players} {bulk} --out {out}", True)

    def _openings(self, games: int, out: str) -> Command:
        """The command that plays openings by the SL policy for games of deterministic players: one opening per two
        games."""
        return self._play(SL, out, max(1, games // 2), more=f" --limit {OPENING_MOVES}")

    def _match(self, engines: tuple[str, str], out: str, games: int, more: str = "") -> Command:
        first, second = map(shlex.quote, engines)
        options = f"{more} {self._board} --games {games}"
        summary = f"{out}/summary.json"
        return Command(
            summary, f"match --first {first} --second {second}{options} --sgf {out} --json {summary}"
        )  # fmt: skip

    def _games(self) -> Iterator[Command]:
        preset, played = self.preset, "games/played"
        if not self.people:
            yield self._play("default", played, preset.games, seed=0)
        sources = " ".join(shlex.quote(str(path.resolve())) for path in self.people) or played
        shares = f"--validation-share {min(0.1, max(0.01, 400 / preset.games)):g} --test-share 0"
        rank = f" --min-rank {preset.min_rank}" if self.people and preset.min_rank else ""
        build = f"data build {sources} --size {preset.size}{rank} {shares} --seed {self.seed} --out games/set"
        yield Command("games/set", build)

    def _supervised(self) -> Iterator[Command]:
        preset, learn = self.preset, f"--games games/set/train --validation {VALIDATION}"
        learn += f" --mover-rank {self.mover_rank}" if self.people and self.mover_rank else ""
        shape = f"--size {preset.size} --filters {preset.filters} {preset.train} {preset.sl}"
        yield Command(
            SL, f"train policy {learn} {shape} --seed {self.seed} --device {self.device} --out sl", is_shared=True
        )
        if preset.size in SHIPPED_SIZES:
            yield self._play(f"{SL} --opponent default", "sl/against-shipped", max(2, preset.decisive // 10))
        if program := find_gnugo():
            yield self._openings(preset.pair_games, "sl/openings")
            policy = keima(*f"gtp --config none --weights {SL} --size {preset.size} --policy-only".split())
            engines = shlex.join(policy), shlex.join(gnugo(program, GNUGO_LEVEL))
            yield self._match(engines, "sl/against-gnugo", self.preset.pair_games, " --openings sl/openings")

    def _patterns(self) -> Iterator[Command]:
        learn = f"--games games/set/train --validation {VALIDATION} --size {self.preset.size} --shards 0"
        yield Command(ROLLOUT, f"train rollout {learn}{'' if self.people else SHARPER} --out {ROLLOUT}")
        yield Command(TREE, f"train tree {learn} --out {TREE}")

    def _reinforced(self) -> Iterator[Command]:
        """Commands that train the RL policy and play it against the SL policy: both sampling, then both greedy."""
        yield Command(RL, f"train reinforce {SL} {self._bulk} {self.preset.rl} --seed {self.seed} --out rl", True)
        both, games = f"{RL} --opponent {SL}", self.preset.decisive
        yield self._play(both, "rl/sampling", games)
        yield self._openings(games // 10, "rl/openings")
        yield self._play(both, "rl/greedy", max(2, games // 10), more=" --openings rl/openings --least-share 1")

    def _value_data(self) -> Iterator[Command]:
        # The held-out positions are few, so each of these sets is one shard.
        positions, half = self.preset.positions, self.preset.held_out // 2
        kinds = (
            ("train", positions, ""), ("test", self.preset.held_out - half, ""),
            ("whole", positions, " --whole-games"), ("selection", half, ""),
        )  # fmt: skip
        for number, (name, count, more) in enumerate(kinds, 2):
            rest = f"--positions {count}{more} --games-per-shard 100000 --seed {self.seed + number}"
            text = f"data values {SL} {RL} {self._bulk} {rest} --out values/{name}"
            yield Command(f"values/{name}", text, is_shared=name in ("train", "whole"))

    def _value_networks(self) -> Iterator[Command]:
        """Commands that train two value networks and compare their errors with those of other networks and of rollouts,
        as in the paper's Figure 2b."""
        preset = self.preset
        shape = f"--size {preset.size} --filters {preset.value_filters} {preset.train} {preset.value}"
        for _, network, data, more in VALUE_KINDS:
            options = f"--validation {SELECTION} {shape}{more} --seed {self.seed} --device {self.device}"
            yield Command(network, f"train value --games {data} {options} --out {network.split('/')[0]}", True)
        beside = f"--beside whole_games={VALUE_WHOLE}" + " --beside shipped=default" * (preset.size in SHIPPED_SIZES)
        policies = f"--policy uniform=uniform --policy rollout={ROLLOUT} --policy sl={SL} --policy rl={RL}"
        options = f"--rollouts {preset.rolled_out} --device {self.device} {beside} {policies}"
        yield Command(EVALUATION, f"evaluate {VALUE} {TEST} {options} --json > {EVALUATION}")

    def _pairs(self) -> Iterator[tuple[tuple[Player, Player], int]]:
        """The matches of the ablation: two of :data:`PLAYERS`, and their number of games."""
        games = self.preset.pair_games
        yield from ((pair, games) for pair in pairwise(PLAYERS))
        yield from (((PLAYERS[0], other), games // 2) for other in PLAYERS[2:])

    def _ablation(self) -> Iterator[Command]:
        """Commands that play the matches of the ablation, with a temperature in the first moves."""
        preset = self.preset
        parts = f"--size {preset.size} --patterns {'+'.join(PATTERNS)} --device {self.device}"
        search = f"--seconds {preset.seconds} --threads 1 --evaluators 1 --temperature 0.5"
        search += f" --temperature-moves {preset.size}"
        for pair, games in self._pairs():
            first, second = (
                shlex.join(keima(*f"gtp --config none --weights {one.weights} {parts} {search}{one.options()}".split()))
                for one in pair
            )
            names = f" --first-name {pair[0].name} --second-name {pair[1].name}"
            yield self._match((first, second), f"ablation/{pair[0].name}-{pair[1].name}", games, names)
