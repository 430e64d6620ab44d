"""The stages of ``keima alphago``: what each makes, and the ``keima`` commands that make it.

    OUT/games/     games by the shipped network (played), or those of people, as shards to train on (set)
    OUT/sl/        the policy network that supervised learning makes of them
    OUT/patterns/  rollout policy and tree policy
    OUT/rl/        the policy network that goes on by reinforcement learning, and its games against the start
    OUT/values/    positions of both policies' games for the value network, one a game (train), some of them held out:
                   to choose a step by (selection), to report errors on (test); and as many of whole games (whole)
    OUT/value/     the value network
    OUT/value-whole/   another one, of the whole games, to compare with
    OUT/ablation/  matches between players that lack one part or another

Each command can be typed as it is shown; all go on where they were stopped. Start at :func:`all_stages`.
"""

import shlex
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from bench.alphago.presets import Preset
from engine.records.archive import disk_bytes
from engine.records.shards import MANIFEST
from engine.system.programs import find_gnugo, gnugo, keima

GNUGO_LEVEL = 10
SHIPPED_SIZES = range(7, 20)
"""Boards of the shipped network"""
WHOLE = ("--whole-games",)
SHARPER = ("--temperature", "0.5")
"""Of a rollout policy that learns from moves which a network drew; as flat as these moves it plays worse in a search"""
OPENING_MOVES = 8
"""Moves of the SL policy that games between greedy policies begin with, so that they differ"""
BATCH = "--batch"
"""Positions of a step in each process that trains"""
TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node")
"""Starts the processes that share a command; their number comes next"""


@dataclass(frozen=True)
class Command:
    """One ``keima`` command."""

    words: tuple[str, ...]
    makes: Path
    """what is there when it has ended; its parent folder is made before"""
    is_shared: bool = False
    """processes of torchrun may share it"""
    prints: bool = False
    """what it makes is what it prints"""
    made_from: tuple[Path, ...] = ()
    """files that it works with, where it does not itself see that they are the same each time"""
    name: str = ""
    """what it makes and of what, wherever that lies and whatever computes it; "" = its text"""

    @property
    def key(self) -> str:
        """What it is remembered by."""
        return self.name or self.text

    @property
    def text(self) -> str:
        """As people type it."""
        return shlex.join(("keima", *self.words)) + (f" > {shlex.quote(str(self.makes))}" if self.prints else "")

    def arguments(self, processes: int = 1) -> list[str]:
        """To start it with.

        Args:
            processes: that share it on this machine, if it can be shared; together they do what one would.
        Raises:
            ValueError: a batch cannot be divided equally among them; one line.
        """
        if processes == 1 or not self.is_shared:
            return keima(*self.words)
        words = list(self.words)
        if BATCH in words:
            at = words.index(BATCH) + 1
            each, rest = divmod(int(words[at]), processes)
            if rest:
                raise ValueError(f"--processes {processes}: cannot divide batches of {words[at]} positions equally")
            words[at] = str(each)
        return [*TORCHRUN, str(processes), "--no-python", "--", *keima(*words)]


@dataclass(frozen=True)
class Stage:
    """Commands that belong together."""

    name: str
    what: str
    commands: tuple[Command, ...]
    share: float
    """of the time of the whole, roughly"""
    games: int = 0
    """that its commands, all of them matches, play together: they run at once, each on one core; 0 = in turn"""


@dataclass(frozen=True)
class Player:
    """A player of the ablation, as in the paper's Extended Data Table 7."""

    name: str
    parts: str
    paper_elo: int
    weights: str
    """of :meth:`Way.networks`"""
    options: tuple[str, ...] = ()


PLAYERS = (
    Player("rvp", "policy, value, rollouts; lambda 0.5", 2890, "policy+value", ("--rollout-weight", "0.5")),
    Player("rp", "policy, rollouts; lambda 1", 2416, "policy", ("--rollout-weight", "1")),
    Player("vp", "policy, value; lambda 0", 2177, "policy+value"),
    Player("rv", "tree policy, value, rollouts; lambda 0.5", 2077, "value", ("--rollout-weight", "0.5")),
    Player("v", "tree policy, value; lambda 0", 1655, "value"),
    Player("p", "policy, no search", 1517, "policy", ("--policy-only",)),
    Player("r", "tree policy, rollouts; lambda 1", 1457, "none"),
)
"""In the order of the paper's ratings; each plays its neighbours"""


@dataclass(frozen=True)
class Way:
    """One folder, and what is to be made in it."""

    out: Path
    preset: Preset
    people: tuple[Path, ...]
    """games to learn from; empty = the shipped network plays some"""
    device: str
    seed: int

    @property
    def anywhere(self) -> "Way":
        """The same way, however its folder is spelled, wherever it was moved to and whatever computes."""
        people = tuple(Path(f"{path.resolve().name}, {disk_bytes(path)} bytes") for path in self.people)
        return replace(self, out=Path("OUT"), people=people, device="DEVICE")

    @property
    def sl(self) -> Path:
        """The SL policy."""
        return self.out / "sl" / "network.safetensors"

    @property
    def rl(self) -> Path:
        """The RL policy."""
        return self.out / "rl" / "network.safetensors"

    @property
    def value(self) -> Path:
        """The value network, as it was when its error on :attr:`selection` was lowest."""
        return self.out / "value" / "best.safetensors"

    @property
    def evaluation(self) -> Path:
        """What the value network was found to be worth beside others."""
        return self.value.parent / "evaluation.json"

    def value_kinds(self) -> Iterator[tuple[str, Path, Path]]:
        """The kinds of data that a value network learns from: name, folder of the network, folder of the data."""
        yield "one_a_game", self.value.parent, self.out / "values" / "train"
        yield "whole_games", self.out / "value-whole", self.out / "values" / "whole"

    @property
    def patterns(self) -> tuple[Path, Path]:
        """Rollout policy and tree policy."""
        return self.out / "patterns" / "rollout.npz", self.out / "patterns" / "tree.npz"

    @property
    def validation(self) -> Path:
        """Games held out of supervised learning."""
        return self.out / "games" / "set" / "validation.npz.xz"

    @property
    def held_out_values(self) -> Path:
        """Positions held out of the value network's training, on which its error is reported."""
        return self.out / "values" / "test" / "games-00000.npz.xz"

    @property
    def selection(self) -> Path:
        """Others, by which the step is chosen: the least of many errors is too low an estimate of the next one."""
        return self.out / "values" / "selection" / "games-00000.npz.xz"

    def weights(self, player: Player) -> str:
        """What ``--weights`` gets for a player of the ablation."""
        files = {"policy": str(self.sl), "value": str(self.value), "policy+value": f"{self.sl}+{self.value}"}
        return files.get(player.weights, player.weights)

    def _command(
        self, *words: object, makes: Path, is_shared: bool = False, prints: bool = False,
        made_from: tuple[Path, ...] = (),
    ) -> Command:  # fmt: skip
        return Command(tuple(map(str, words)), makes, is_shared, prints, made_from)

    @property
    def _board(self) -> tuple[str, ...]:
        """Options of all games."""
        return "--size", str(self.preset.size), "--komi", f"{self.preset.komi:g}"

    @property
    def _bulk(self) -> tuple[str, ...]:
        """Options of games in bulk."""
        return *self._board, "--device", self.device

    def games(self) -> Iterator[Command]:
        """Games to learn from."""
        folder, preset = self.out / "games", self.preset
        sources = self.people
        if not sources:
            sources = (folder / "played",)
            yield self._command(
                "data", "play", "default", *self._bulk, "--games", preset.games, "--seed", self.seed,
                "--out", sources[0], makes=sources[0], is_shared=True,
            )  # fmt: skip
        share = min(0.1, max(0.01, 400 / preset.games))
        yield self._command(
            "data", "build", *sources, "--size", preset.size, "--validation-share", f"{share:g}", "--test-share", 0,
            "--seed", self.seed, "--out", folder / "set", makes=folder / "set",
        )  # fmt: skip

    def supervised(self) -> Iterator[Command]:
        """The SL policy."""
        preset = self.preset
        yield self._command(
            "train", "policy", "--games", self.out / "games" / "set" / "train", "--validation", self.validation,
            "--size", preset.size, "--filters", preset.filters, *preset.train, *preset.sl, "--seed", self.seed,
            "--device", self.device, "--out", self.sl.parent, makes=self.sl, is_shared=True,
            made_from=(self.out / "games" / "set" / MANIFEST,),
        )  # fmt: skip
        if preset.size in SHIPPED_SIZES:
            yield self._against(self.sl, "default", self.sl.parent / "against-shipped", preset.decisive // 10)
        if program := find_gnugo():
            folder, openings = self.sl.parent / "against-gnugo", self.sl.parent / "openings"
            yield self._openings(preset.pair_games, openings)
            policy = keima("gtp", "--config", "none", "--weights", self.sl, "--size", preset.size, "--policy-only")
            opponent = gnugo(program, GNUGO_LEVEL)
            yield self._command(
                "match", "--first", shlex.join(policy), "--second", shlex.join(opponent), *self._board,
                "--games", preset.pair_games, "--openings", openings, "--sgf", folder,
                "--json", folder / "summary.json", makes=folder / "summary.json", made_from=(self.sl,),
            )  # fmt: skip

    def pattern_policies(self) -> Iterator[Command]:
        """Rollout policy and tree policy."""
        rollout, tree = self.patterns
        for path, words in (rollout, () if self.people else SHARPER), (tree, ()):
            yield self._command(
                "train", path.stem, "--games", self.out / "games" / "set" / "train", "--validation", self.validation,
                "--size", self.preset.size, "--shards", 0, *words, "--out", path, makes=path,
            )  # fmt: skip

    def reinforced(self) -> Iterator[Command]:
        """The RL policy, and its games against the SL policy: both sampling, then both greedy."""
        preset, folder = self.preset, self.rl.parent
        yield self._command(
            "train", "reinforce", self.sl, *self._bulk, *preset.rl, "--seed", self.seed, "--out", folder, makes=self.rl,
            is_shared=True,
        )  # fmt: skip
        yield self._against(self.rl, self.sl, folder / "sampling", preset.decisive)
        openings, greedy = folder / "openings", preset.decisive // 10
        yield self._openings(greedy, openings)
        yield self._against(self.rl, self.sl, folder / "greedy", greedy, "--openings", openings, "--least-share", "1")

    def _openings(self, games: int, out: Path) -> Command:
        """First moves of the SL policy for some games between players that draw nothing, two games from each."""
        return self._command(
            "data", "play", self.sl, *self._bulk, "--games", max(1, games // 2), "--limit", OPENING_MOVES, "--seed",
            self.seed + 1, "--out", out, makes=out, is_shared=True,
        )  # fmt: skip

    def _against(self, first: Path, second: Path | str, out: Path, games: int, *words: object) -> Command:
        """Games of two policies without search."""
        return self._command(
            "data", "play", first, "--opponent", second, *self._bulk, "--games", max(2, games), *words,
            "--seed", self.seed + 1, "--out", out, makes=out, is_shared=True,
        )  # fmt: skip

    def value_data(self) -> Iterator[Command]:
        """Positions for the value network."""
        preset, folder = self.preset, self.out / "values"
        # Those held out are few, and one file for each of their uses.
        half = preset.held_out // 2
        kinds = (
            ("train", preset.positions, ()), ("test", preset.held_out - half, ()), ("whole", preset.positions, WHOLE),
            ("selection", half, ()),
        )  # fmt: skip
        for number, (name, positions, words) in enumerate(kinds, 2):
            yield self._command(
                "data", "values", self.sl, self.rl, *self._bulk, "--positions", positions, *words,
                "--games-per-shard", 100_000, "--seed", self.seed + number, "--out", folder / name,
                makes=folder / name, is_shared=name not in ("test", "selection"),
            )  # fmt: skip

    def value_networks(self) -> Iterator[Command]:
        """The value network, and one of whole games, both tested on the same positions; what else would do as well."""
        preset = self.preset
        for name, folder, data in self.value_kinds():
            every = ("--positions-per-game", "0") if name == "whole_games" else ()
            yield self._command(
                "train", "value", "--games", data, "--validation", self.selection, "--size", preset.size,
                "--filters", preset.value_filters, *preset.train, *preset.value, *every, "--seed", self.seed,
                "--device", self.device, "--out", folder, makes=folder / self.value.name, is_shared=True,
                made_from=(self.sl, self.rl),
            )  # fmt: skip

        yield self._evaluation()

    def _evaluation(self) -> Command:
        """Errors of the value network beside those of others and of rollouts: the paper's Figure 2b."""
        rollout, networks = self.patterns[0], [("whole_games", str(self.out / "value-whole" / self.value.name))]
        if self.preset.size in SHIPPED_SIZES:
            networks.append(("shipped", "default"))
        policies = (("uniform", "uniform"), ("rollout", rollout), ("sl", self.sl), ("rl", self.rl))
        return self._command(
            "evaluate", self.value, self.held_out_values, "--rollouts", self.preset.rolled_out, "--device", self.device,
            *(word for name, what in networks for word in ("--beside", f"{name}={what}")),
            *(word for name, what in policies for word in ("--policy", f"{name}={what}")),
            "--json", makes=self.evaluation, prints=True,
        )  # fmt: skip

    def ablation(self) -> Iterator[Command]:
        """Matches between neighbours of the paper's table."""
        for first, second in pairwise(PLAYERS):
            yield self._match(first, second)

    def _match(self, first: Player, second: Player) -> Command:
        """The match of two players."""
        preset, folder = self.preset, self.out / "ablation" / f"{first.name}-{second.name}"
        engines = []
        for player in (first, second):
            engine = keima(
                "gtp", "--config", "none", "--weights", self.weights(player), "--size", preset.size,
                "--patterns", "+".join(map(str, self.patterns)), "--device", self.device,
                "--seconds", preset.seconds, "--threads", 1, "--evaluators", 1, "--temperature", 0.5,
                "--temperature-moves", preset.size, *player.options,
            )  # fmt: skip
            engines.append(shlex.join(engine))
        return self._command(
            "match", "--first", engines[0], "--second", engines[1], "--first-name", first.name,
            "--second-name", second.name, *self._board, "--games", preset.pair_games, "--sgf", folder,
            "--json", folder / "summary.json", makes=folder / "summary.json",
            made_from=(self.sl, self.value, *self.patterns),
        )  # fmt: skip


def all_stages(way: Way) -> tuple[Stage, ...]:
    """Every stage, in order."""
    return tuple(
        replace(stage, commands=tuple(map(_named, stage.commands, other.commands)))
        for stage, other in zip(_stages(way), _stages(way.anywhere), strict=True)
    )


def _named(command: Command, anywhere: Command) -> Command:
    """A command with the name that it has by another of :attr:`Way.anywhere`; programs are called by theirs."""
    text = " ".join(("keima", *anywhere.words)).replace(shlex.join(keima()), "keima")
    program = find_gnugo()
    return replace(command, name=text.replace(shlex.quote(program), "gnugo") if program else text)


def _stages(way: Way) -> tuple[Stage, ...]:
    """Every stage, its commands as they are typed."""
    matches = tuple(way.ablation())
    return (
        Stage("games", "games to learn from", tuple(way.games()), 0.05),
        Stage("sl", "the policy network, by supervised learning", tuple(way.supervised()), 0.1),
        Stage("patterns", "rollout policy and tree policy", tuple(way.pattern_policies()), 0.02),
        Stage("rl", "the policy network, by reinforcement learning", tuple(way.reinforced()), 0.23),
        Stage("values", "positions for the value network", tuple(way.value_data()), 0.2),
        Stage("value", "the value network", tuple(way.value_networks()), 0.2),
        Stage("ablation", "players that lack one part or another", matches, 0.2, len(matches) * way.preset.pair_games),
    )
