"""``keima train reinforce``: reinforcement learning of a policy network in games against its earlier versions.

    OUT/reinforce.json        manifest: initial network, baseline, options
    OUT/state.safetensors     weights and optimizer after the latest saved update
    OUT/network.safetensors   the network, ready to play
    OUT/pool/000100.safetensors, ...   earlier versions, by update
    OUT/curves.csv, curves.png

Each update plays a mini-batch of games against a uniformly drawn member of the pool, half of them with each colour, and
trains on the learner's moves (:mod:`engine.train.policy_gradient`). Every ``pool_every`` updates the current weights
enter the pool, whose first member is the initial network. All random choices follow from the seed and the number of the
update, so a stopped run resumes with the same results. Processes of torchrun share the games of a mini-batch or match
and add up their gradients; results equal those of one process up to rounding. Only the first process writes.

Source: Silver et al., "Mastering the game of Go with deep neural networks and tree search", 2016, Methods,
"Reinforcement learning of policy networks". Start at :meth:`Reinforce.run`.
"""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

from engine.config.declaration import Checked, option
from engine.go.geometry import BLACK, MAX_SIZE, MIN_SIZE, WHITE
from engine.inference.server import InferenceServer
from engine.nets.files.read import read_network
from engine.nets.model import model_of
from engine.nets.network import Network
from engine.nets.on_device import load_network
from engine.records.games import select
from engine.records.schema import join
from engine.selfplay.game_distribution import GameDistribution, unit_of
from engine.selfplay.games import Finished, GameBatch, Player, batches_for
from engine.selfplay.plan import PASSES, BulkOptions, check_player, setups_of
from engine.system.run_folder import open_manifest, refuse_foreign
from engine.train.curves import Curves
from engine.train.policy_gradient import OPTIMIZER, Experience, Learning, PolicyLearner
from engine.train.ranks import Ranks, own_cores
from engine.train.state import SAVE_S

MANIFEST, STATE, NETWORK, POOL = "reinforce.json", "state.safetensors", "network.safetensors", "pool"
FORMAT = "keima reinforce"
OPPONENTS, MATCHES = 2, 3
"""Streams of random numbers: the opponent of an update, and the seed of an evaluation match"""
NETWORKS_HELD = 4
"""Maximum number of opponents from the pool that are kept in memory"""
PANELS = {
    "win rate": ("rl/win_rate",),
    "entropy of a move, divergence from the start (nats)": ("rl/entropy", "rl/divergence"),
    "moves of a game": ("rl/moves",),
}
"""Charts of a run: titles, and prefixes of the metrics' names"""


@dataclass(frozen=True)
class ReinforceOptions(Checked):
    """Options of reinforcement learning; a run resumes only with the same options of :meth:`record`."""

    distribution: GameDistribution
    updates: int = option(10_000, "number of updates, one mini-batch of games each", low=1)
    games: int = option(128, "games of a mini-batch", low=2)
    size: int = option(19, "board size", low=MIN_SIZE, high=MAX_SIZE)
    passes: str = option(
        "last", "passes: last = only when every other move fills an own eye, free = as the policy draws them",
        choices=PASSES,
    )  # fmt: skip
    pool_every: int = option(500, "updates between additions of the current weights to the opponent pool", low=1)
    rate: float = option(
        7e-5, "learning rate of SGD without momentum, as published; 7e-05 was measured on 9x9 with --entropy 0.01, and "
        "gradients grow with the length of games", low=0.0,
    )  # fmt: skip
    entropy: float = option(0.0, "entropy bonus: weight of the policy's entropy beside the reward", low=0.0)
    clip: float = option(0.0, "gradient clipping: maximum norm; 0 = off", low=0.0)
    check_every: int = option(
        100, "updates between evaluation matches: against the start, the newest opponent and the whole pool", low=1
    )
    check_games: int = option(200, "games of an evaluation match", low=2)
    save_every: int = option(20, "updates between checkpoints; also one every 20 seconds", low=1)
    seed: int = option(1, "random seed", low=0)

    def play(self, seed: int) -> BulkOptions:
        """Options of bulk games under a seed."""
        return BulkOptions(self.distribution, size=self.size, passes=self.passes, seed=seed)

    def record(self) -> dict[str, Any]:
        """The options that must not change when a run resumes, for the manifest."""
        free = ("distribution", "updates", "check_every", "check_games", "save_every")
        kept = {name: value for name, value in vars(self).items() if name not in free}
        # Older versions had these options; runs with today's only values resume.
        return kept | {"optimizer": OPTIMIZER, "normalise": False} | self.distribution.record()


def member_of(update: int, members: int, seed: int) -> int:
    """Index of the opponent of an update, drawn uniformly from the ``members`` of the pool."""
    return int(unit_of(seed, np.array([update]), OPPONENTS)[0] * members)


class Reinforce:
    """A run of reinforcement learning in its folder."""

    def __init__(
        self, start: Path, identity: dict[str, str], options: ReinforceOptions, out: Path, device: Any,
        baseline: tuple[Network, dict[str, str]] | None, threads: int, ranks: Ranks,
    ) -> None:  # fmt: skip
        """Begin or resume a run.

        Args:
            start: file of the initial network.
            identity: name and sha256 of ``start``.
            device: a torch device.
            baseline: a network whose values are subtracted from the rewards, and its identity; None = no baseline.
            threads: evaluators on the CPU; 0 = one for each core of this process.
            ranks: the processes that train together.
        Raises:
            ValueError: a network does not support the options, or the folder contains something else; one line.
        """
        self.options, self._out, self._device, self._ranks = options, out, device, ranks
        self._threads = threads or own_cores()
        network, spec, _ = read_network(start)
        check_player(spec, [options.size], options.distribution)
        if baseline:
            baseline[0].spec.check_sizes(np.array([options.size]))
        if options.games < self._ranks.count:
            raise ValueError(f"a mini-batch has {options.games} games, expected at least one for each process")
        of_baseline = baseline[1] if baseline else {}
        self._record = {"start": identity, "baseline": of_baseline, "options": options.record()}
        learning = Learning(options.rate, options.passes == "last", options.entropy, options.clip)
        self.learner = PolicyLearner(
            model_of(network), spec, device, learning, baseline[0] if baseline else None, self._ranks
        )
        self._by_first(self._open)
        if (out / STATE).exists():
            self.learner.load(out / STATE)
        if self._ranks.most(self.learner.step != self._ranks.of_first(self.learner.step, device), device):
            raise ValueError(f"{out}: differs between processes; all machines must share one folder")
        self.curves = Curves(out / "curves.csv", self.learner.step) if self._ranks.is_first else None
        self._member = lru_cache(NETWORKS_HELD)(lambda entered: load_network(self._member_path(entered), str(device)))
        """returns a member of the pool, given the update after which it entered"""

    def _open(self) -> None:
        """Create the folder, or check that it belongs to this run."""
        out = self._out
        refuse_foreign(out, MANIFEST, "such a run")
        open_manifest(out / MANIFEST, {"format": FORMAT, **self._record}, {})
        (out / POOL).mkdir(exist_ok=True)
        if not self._member_path(0).exists():
            self.learner.save_network(self._member_path(0), self._record)

    def _by_first(self, write: Callable[[], None]) -> None:
        """Let the first process write; see :meth:`engine.train.ranks.Ranks.by_first`."""
        self._ranks.by_first(write, self._device, f"{self._out}: the first process could not use the folder")

    @property
    def pool(self) -> range:
        """Members of the opponent pool, oldest first, each named by the update after which it entered."""
        return range(0, self.learner.step + 1, self.options.pool_every)

    def _member_path(self, entered: int) -> Path:
        return self._out / POOL / f"{entered:06}.safetensors"

    def run(self, is_stopped: Callable[[], bool], report: Callable[[int, dict[str, float]], None]) -> None:
        """Train to the last update, or until stopped; the state is saved in either case.

        After a failure nothing is saved, since the state may lack a member of the pool or a match; a resumed run
        repeats the updates since the latest save with the same results.

        Args:
            is_stopped: called before each update; all processes stop if it is true in one.
            report: called with each update's number and metrics, in the first process.
        Raises:
            RuntimeError, ValueError, OSError: a network, the disk or another process failed.
        """
        options, learner, ranks = self.options, self.learner, self._ranks
        saved = time.perf_counter()
        while learner.step < options.updates and not ranks.most(is_stopped(), self._device):
            metrics = self._update()
            if learner.step % options.pool_every == 0:
                path = self._member_path(learner.step)
                self._by_first(partial(learner.save_network, path, self._record))
            if learner.step % options.check_every == 0 or learner.step == options.updates:
                metrics |= self.check()
            if self.curves:
                self.curves.enter(learner.step, {f"rl/{name}": value for name, value in metrics.items()})
                if learner.step % options.save_every == 0 or time.perf_counter() - saved > SAVE_S:
                    self.save()
                    saved = time.perf_counter()
                report(learner.step, metrics)
        if ranks.is_first:
            self.save()
        if self.curves:
            self.curves.plot(self._out / "curves.png", PANELS)

    def save(self) -> None:
        """Write state and network; only the first process may call this."""
        self.learner.save_network(self._out / NETWORK, self._record)
        self.learner.save(self._out / STATE)

    def _update(self) -> dict[str, float]:
        """Play a mini-batch of games and train on it; returns metrics by name."""
        options, update = self.options, self.learner.step
        pool, begun = self.pool, time.perf_counter()
        opponent = self._member(pool[member_of(update, len(pool), options.seed)])
        numbers = update * options.games + np.arange(options.games)
        finished = self._games(self.learner.network("current"), opponent, numbers, options.seed)
        played_s = time.perf_counter() - begun
        experience = self._experience(finished)
        metrics = self.learner.learn(experience)
        (moves,) = self._ranks.total([len(experience.games.moves)], self._device)
        return metrics | {
            "win_rate/mini-batch": self._win_rate(finished),
            "moves": moves / options.games,
            "games_per_s": options.games / played_s,
            "seconds": time.perf_counter() - begun,
        }

    def check(self) -> dict[str, float]:
        """Win rates of the current network against the initial one, the newest pool member, and the whole pool."""
        options, pool = self.options, self.pool
        current = self.learner.network("current")
        older = [entered for entered in pool if entered < self.learner.step] or [0]
        opponents = {"start": [0], "newest": older[-1:], "pool": older}
        found = {}
        for k, (name, members) in enumerate(opponents.items()):
            # An even number of games for each member, so that both colours are played.
            each = 2 * max(1, round(options.check_games / len(members) / 2))
            seed = int(unit_of(options.seed, np.array([3 * self.learner.step + k]), MATCHES)[0] * (1 << 40))
            rates = []
            for i, entered in enumerate(members):
                numbers = i * each + np.arange(each)
                rates.append(self._win_rate(self._games(current, self._member(entered), numbers, seed)))
            found[f"win_rate/{name}"] = float(np.mean(rates))
        return found

    def _games(self, first: Network, second: Network, numbers: np.ndarray, seed: int) -> list[Finished]:
        """Play this process's part of some games of two networks; the first has Black in even-numbered games."""
        play = self.options.play(seed)
        with (
            InferenceServer(first, threads=self._threads, max_batch=len(numbers)) as one,
            InferenceServer(second, threads=self._threads, max_batch=len(numbers)) as other,
        ):
            # Each thread has fixed games, so that batches, and with them rounding, are reproducible.
            parts = [part for part in np.array_split(self._ranks.part(numbers), batches_for(one)) if len(part)]

            def work(part: np.ndarray) -> list[Finished]:
                players = [Player(server, play.config()) for server in (one, other)]
                batch = GameBatch(players, play.size, len(part), partial(setups_of, play))
                return list(batch.play(iter(part.tolist())))

            with ThreadPoolExecutor(max(1, len(parts))) as executor:
                return [finished for found in executor.map(work, parts) for finished in found]

    def _experience(self, finished: list[Finished]) -> Experience:
        """The learner's training data from finished games, sorted by number; the learner is the first network."""
        games = join([one.games for one in finished])
        symmetries = np.concatenate([one.symmetries for one in finished])
        order = np.argsort(games.number)
        lengths, starts = np.diff(games.offsets)[order], games.offsets[:-1][order]
        at = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths) + np.arange(lengths.sum())
        games = select(games, order)
        rules, temperatures = self.options.distribution.draw(self.options.seed, games.number, self.options.size)
        learner = np.where(games.number % 2 == 0, BLACK, WHITE).astype(np.uint8)
        return Experience(games, symmetries[at], rules, temperatures, learner)

    def _win_rate(self, finished: list[Finished]) -> float:
        """Win rate of the first network in the finished games of all processes; a draw counts half."""
        won = [(np.where(one.games.number % 2 == 0, 1, -1) * one.games.result).sum() for one in finished]
        played = [len(one.games.size) for one in finished]
        points, games = self._ranks.total([sum(won), sum(played)], self._device)
        return 0.5 + 0.5 * points / games
