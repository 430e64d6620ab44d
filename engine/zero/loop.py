"""``keima zero``: reinforcement learning from self-play alone, in a folder from which any start resumes.

    OUT/zero.json               manifest: initial network, options, and the current turn
    OUT/rows/                   self-play (:mod:`engine.selfplay.search_play`)
    OUT/state.safetensors       weights and optimizer (:mod:`engine.train.turns`)
    OUT/networks/00001200.safetensors, ...   networks by training steps
    OUT/network.safetensors     the newest network, ready to play; after an interrupted training, its averaged weights
    OUT/curves.csv              metrics by step

A turn is an iteration of the loop: the network plays until the turn has its new rows; a window of the newest rows is
fixed, and the steps due for them are trained; the new network is measured, and plays next. Each phase is recorded
before it begins, with the shards of the window, so a run that was stopped or killed repeats some seconds of training
and loses only the games in play. Self-play and training share nothing but the folder. Start at :meth:`Zero.run`.
"""

import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from engine.features.encoder import ENCODERS
from engine.go.rules import RULE_SETS
from engine.inference.server import InferenceServer
from engine.records.schema import join
from engine.records.search_rows import SearchRows, read_search_rows
from engine.selfplay.search_games import resignation_bound
from engine.selfplay.search_match import Outcome, SearchMatchJob, match_options
from engine.selfplay.search_options import MOST_KOMI
from engine.system.executor import Executor
from engine.system.files import sha256_of
from engine.system.run_folder import open_manifest, refuse_foreign, write_manifest
from engine.train.curves import Curves
from engine.train.turns import TurnLearner, WindowBatches, first_network, newest
from engine.zero.facts import EmptyBoard, facts_of_board, facts_of_rows, first_moves, look_at_empty_board
from engine.zero.networks import NETWORK, NETWORKS, ZeroNetworks
from engine.zero.options import ZeroConfig
from engine.zero.self_play import ZeroPlay
from engine.zero.turn import CHECK, PLAY, TRAIN, Progress, Turn

MANIFEST, ROWS, CURVES = "zero.json", "rows", "curves.csv"
FORMAT = "keima zero 2"
COOL = 0.1
"""Factor of the learning rate in the cooldown"""
KOMI_STEP = 0.5
"""Share of its distance to the fair komi by which the komi changes in a turn"""

Check = Callable[["Zero", Path], None]
"""Called with the run and the file of a new network to play its matches; reports its own progress, and ends early when
the run stops"""


class Zero:
    """A run of ``keima zero`` in its folder, which no other process may use."""

    def __init__(
        self, out: Path, config: ZeroConfig, device: Any, threads: int = 0, start: Path | None = None,
        progress: Progress | None = None, check: Check | None = None, minutes: float = 0.0,
        executor: Executor | None = None,
    ) -> None:  # fmt: skip
        """Begin or resume a run.

        Args:
            device: a torch device.
            threads: number of evaluators on the CPU; 0 = one per core.
            start: the initial network; None = random weights.
            check: plays matches of each new network.
            minutes: time from this start after which the run stops; 0 = never.
            executor: plays self-play games and matches; None = threads of this process.
        Raises:
            ValueError: the folder contains something else, or a network does not support the options; one line.
        """
        if config.play.full_share <= 0.0:
            raise ValueError("full_share is 0, expected more: only full searches give rows to train on")
        self.out, self.config, self.progress = out, config, progress or Progress()
        self._check, self._minutes, self._begun_s, self._is_asked = check, minutes, time.monotonic(), False
        idle = device.type == "cuda" or executor is not None
        self._is_beside = idle if config.loop.side_by_side == "auto" else config.loop.side_by_side == "on"
        self._shards: dict[str, SearchRows] = {}
        self.networks = ZeroNetworks(out, device, threads, executor, config.loop.at_once)
        self.board: EmptyBoard | None = None
        """outputs for the empty board of the network evaluated last; None = none since this start"""
        self._pace: dict[str, float] = {}
        """speeds and durations of the current turn, by name"""
        refuse_foreign(out, MANIFEST, "keima zero")
        fixed = {name: getattr(config.play, name) for name in ("size", "rules", "seed")}
        asked, first = {"format": FORMAT, "options": fixed}, start
        if (out / MANIFEST).exists():
            known = open_manifest(out / MANIFEST, asked, {})
            # A resumed run has the shape of its first network and needs no --start.
            first = self.networks.path(0) if self.networks.path(0).exists() else start
            if first is None and known["start"]:
                raise ValueError(f"{out}: stopped before its initial network was copied: repeat --start")
        model, spec = first_network(config.shape, config.play.size, first, config.play.seed)
        asked["shape"] = asdict(model.shape) | (config.shape if first != start else {})
        identity = start and {"name": start.stem, "sha256": sha256_of(start)}
        komi = 0.0 if config.loop.fair_komi and start is None else config.play.komi
        turn = asdict(Turn(wanted=config.loop.first_rows, komi=komi, rate=config.train.rate))
        begun = {"start": identity, "settings": config.settings, "seconds": 0.0, "turn": turn}
        self._manifest = open_manifest(out / MANIFEST, asked, begun)
        if start and identity and (self._manifest["start"] or {}).get("sha256") != identity["sha256"]:
            raise ValueError(f"{out}: begun with another initial network than {start.name}")
        self._seconds = float(self._manifest["seconds"])
        self.turn = self._turn_at_hand()
        (out / NETWORKS).mkdir(exist_ok=True)
        self.learner = TurnLearner(model, spec, config.train, device, out, RULE_SETS[config.play.rules])
        if not self.turn.first_step <= self.learner.step <= max(self.turn.first_step, self.turn.last_step):
            raise ValueError(f"{out}: step {self.learner.step} of its state does not belong to turn {self.turn.number}")
        self.curves = Curves(out / CURVES, self.learner.step)
        self.play = ZeroPlay(out / ROWS, config, executor)
        if not self.networks.path(0).exists():
            self.learner.write_network(self.networks.path(0), self._record())
        if not (out / NETWORK).exists():
            self.networks.ship(self.turn.network)
        self._write()  # So that the next start has these options even if this one is killed within a phase.

    def _turn_at_hand(self) -> Turn:
        """The current turn as the manifest has it; the options of this start replace those of the manifest."""
        before, self._manifest["settings"] = self._manifest["settings"], self.config.settings
        found = self._manifest["turn"]
        if found.keys() != asdict(Turn()).keys():
            raise ValueError(f"{self.out}: begun by an earlier version of Keima; choose another folder")
        turn = Turn(**found)
        # A changed rate takes effect at once: the turn may last for hours.
        is_other = before["train"].get("rate") != self.config.train.rate
        return replace(turn, rate=self.config.train.rate) if is_other else turn

    @property
    def seconds(self) -> float:
        """Duration of the run in seconds so far, over all its starts."""
        return self._seconds + time.monotonic() - self._begun_s

    @property
    def is_stopped(self) -> bool:
        """Whether the run is to end: :meth:`stop` was called, or its time is over."""
        return self._is_asked or 0.0 < 60.0 * self._minutes <= time.monotonic() - self._begun_s

    def stop(self) -> None:
        """Stop the run soon; everything finished is kept. Threads: any; signal handlers too."""
        self._is_asked = True
        self.play.stop()

    def run(self, turns: int = 0) -> None:
        """Run the loop until stopped.

        Args:
            turns: number of turns, over all starts, after which the run ends; 0 = no limit.
        Raises:
            ValueError, RuntimeError, OSError: the network, the rows or the disk failed; the run can be resumed.
        """
        try:
            while not self.is_stopped and (not turns or self.turn.number < turns):
                {PLAY: self._play, TRAIN: self._train, CHECK: self._check_network}[self.turn.phase]()
        finally:
            self.play.close()
            self._write()

    def _write(self, **changes: Any) -> None:
        """Write changes of the turn to the manifest, atomically."""
        self.turn = replace(self.turn, **changes)
        self._manifest |= {"turn": asdict(self.turn), "seconds": self.seconds}
        write_manifest(self.out / MANIFEST, self._manifest)

    def _record(self) -> dict[str, Any]:
        """Metadata for network files: how the network was trained."""
        return {"run": "keima zero", "size": self.config.play.size, "start": self._manifest["start"]}

    @property
    def is_random(self) -> bool:
        """Whether the playing network has random weights."""
        return self.turn.network == 0 and self._manifest["start"] is None

    def _play(self) -> None:
        """Phase of self-play until there are enough rows; then the window is fixed."""
        turn, path, rows = self.turn, self.networks.path(self.turn.network), self.play.rows
        self.progress.at("self-play", 0, 1, f"loading network {turn.network}")
        with self.networks.serve(path) as server:
            self._look(server)
            begun_s, games, had = time.monotonic(), rows.games, rows.all_rows

            def report() -> None:
                spent = max(1e-9, time.monotonic() - begun_s)
                self._pace |= {"games_per_s": (rows.games - games) / spent, "play_s": spent}
                words = (
                    f"network {turn.network}; {rows.games:,} games, {(rows.games - games) / spent:.1f} games/s, "
                    f"{(rows.all_rows - had) / spent:.0f} rows/s; then training"
                )
                self.progress.at("self-play", rows.all_rows - turn.rows_before, turn.rows, words)
                if self.is_stopped:
                    rows.stop()

            while rows.all_rows < turn.wanted and not self.is_stopped:
                self.play.play(turn, self.is_random, path, server, report)
            self.play.end_beside(report)
            report()
        if rows.all_rows >= turn.wanted:
            rows.cut()
            self._fix_window()

    def _fix_window(self) -> None:
        """Fix the window of rows and the number of steps of the turn's training, and begin the training phase."""
        loop, rows = self.config.loop, self.play.rows
        shards = rows.shards
        count = newest([shard["rows"] for shard in shards], loop.window_of(rows.all_rows))
        self.turn = self.turn.in_training(rows.all_rows, self.learner.step, loop)
        self._write(rate=self._rate(), shards=[shard["file"] for shard in shards[len(shards) - count :]])

    def _rate(self) -> float:
        """The learning rate of a training phase that begins now: after its drops, and lower in the cooldown."""
        train, spent = self.config.train, time.monotonic() - self._begun_s
        rate = train.rate * train.drop_factor ** sum(self.learner.step >= at for at in train.drop_at)
        is_cool = self._minutes > 0.0 and spent >= 60.0 * self._minutes * (1.0 - self.config.loop.cooldown)
        return rate * COOL if is_cool else rate

    def _window(self) -> list[SearchRows]:
        """The shards of the window, oldest first; each shard is read once.

        Raises:
            ValueError, OSError: a shard is damaged or missing.
        """
        for name in self.turn.shards:
            if name not in self._shards:
                self._shards[name] = read_search_rows(self.out / ROWS / name)
        self._shards = {name: self._shards[name] for name in self.turn.shards}
        return list(self._shards.values())

    def _new_rows(self) -> SearchRows:
        """The new rows of this turn, the newest of the window; errors as for :meth:`_window`."""
        shards = self._window()
        return join(shards[-newest([len(one.game) for one in shards], self.turn.rows) :])

    def _train(self) -> None:
        """Phase of training: the steps of this turn, the new network, and its metrics."""
        turn, learner = self.turn, self.learner
        self.progress.at("training", 0, 1, "reading the window")
        window = join(self._window())
        encoder, seed = ENCODERS[learner.spec.encoder], self.config.play.seed
        data = WindowBatches(encoder, window, turn.batch, seed)

        def report(step: int, losses: dict[str, float]) -> None:
            words = ", ".join(f"{name} {value:.3f}" for name, value in losses.items())
            words += f"; on {len(window.game):,} rows; "
            words += f"parallel self-play, {rows.all_rows - turn.wanted:,} rows" if is_beside else "then self-play"
            self.progress.at("training", step - turn.first_step, turn.last_step - turn.first_step, words)
            self.play.check()

        # Further games of a network with random weights are not worth their time.
        is_beside, rows = self._is_beside and not self.is_random and not self.is_stopped, self.play.rows
        if is_beside:
            path = self.networks.path(turn.network)
            self.play.begin_beside(turn, path, self.networks.serve(path))
        begun_s = time.monotonic()
        losses = learner.learn(data, (turn.first_step, turn.last_step), turn.rate, lambda: self.is_stopped, report)
        self._pace["train_s"] = time.monotonic() - begun_s
        self.play.enough()
        if learner.step < turn.last_step:
            if self.config.loop.gate <= 0.0 and learner.step > turn.first_step:
                # The run may end here for good: hours of training on large boards, or all of a cooldown.
                learner.write_network(self.out / NETWORK, self._record())
            return
        path = self.networks.path(learner.step)
        learner.write_network(path, self._record())
        self._measure(path, losses, window)
        self._write(phase=CHECK)

    def _measure(self, path: Path, losses: dict[str, float], window: SearchRows) -> None:
        """Measure the new network in ``path``, and record the metrics of the turn."""
        play = self.config.play
        with self.networks.serve(path) as server:
            board = self._look(server)
        measured = {f"train/{name}": value for name, value in losses.items()} | facts_of_board(board)
        measured |= facts_of_rows(self._new_rows()) | {
            "zero/rows": self.turn.wanted, "zero/games": self.play.rows.games, "zero/window": len(window.game),
            "zero/samples_per_row": self.turn.trained / self.turn.wanted,
            "zero/komi": self.turn.komi, "zero/resign": self.turn.resign, "zero/minutes": self.seconds / 60.0,
            "zero/turn": self.turn.number, "zero/rate": self.turn.rate,
        }  # fmt: skip
        measured |= {f"zero/{name}": value for name, value in self._pace.items()}
        # A start that was killed here has written them already.
        self.curves = Curves(self.out / CURVES, self.turn.first_step)
        self.curves.enter(self.learner.step, measured)
        self.progress.say(
            f"network {self.learner.step}, {self.seconds / 60:.1f} min: {self.turn.wanted:,} rows; "
            + ", ".join(f"{name} {value:.3f}" for name, value in losses.items())
            + f"; empty board: {first_moves(board, play.size)}, value {board.value:+.2f} at komi {play.komi:g}, "
            f"score {board.score:+.1f}"
        )

    def _look(self, server: InferenceServer) -> EmptyBoard:
        """Evaluate the empty board, and keep the outputs in :attr:`board`."""
        play = self.config.play
        self.board = look_at_empty_board(server, play.size, play.rules, play.komi)
        return self.board

    def _check_network(self) -> None:
        """Phase of matches: rate the new network, choose the next playing network, and begin the next turn."""
        path = self.networks.path(self.learner.step)
        if self.config.loop.gate <= 0.0:
            # Before the matches, during which the time of the run may end.
            self.networks.ship(self.learner.step)
        if self._check:
            self._check(self, path)
        step = self._next_player()
        if self.is_stopped:
            return
        if self.config.loop.gate > 0.0:
            self.networks.ship(step)
        self._begin_turn(step)
        self.progress.measured()

    def _next_player(self) -> int:
        """Training steps of the next playing network: the new one if it passes the gate, else the present one."""
        loop, old, new = self.config.loop, self.turn.network, self.learner.step
        if loop.gate <= 0.0:
            return new
        self.progress.at("gate", 0, 1, f"{loop.gate_games} games of network {new} against {old}; then self-play")
        visits = self.config.play.visits
        outcome = self.match((self.networks.path(new), self.networks.path(old)), (visits, visits), loop.gate_games)
        if outcome is None:
            return old
        share = outcome.points / outcome.games
        self.curves.enter(new, {"gate/points": share})
        plays = new if share >= loop.gate else old
        self.progress.say(f"network {new} wins {share:.0%} against network {old}: network {plays} plays next")
        return plays

    def match(self, paths: tuple[Path, Path | None], visits: tuple[int, int], games: int) -> Outcome | None:
        """Play a match of two networks; None = the run stopped before its end.

        Args:
            paths: files of the two networks; None for the second = the random player.
            visits: of each player's searches.
        Raises:
            RuntimeError: a network failed.
        """
        options = match_options(self.config.play, self.learner.step)
        job = SearchMatchJob(options, visits, self.learner.spec.encoder, self.config.loop.at_once)
        return self.networks.match(paths, job, games, lambda: self.is_stopped)

    def _begin_turn(self, step: int) -> None:
        """Begin the next turn, in which the network after ``step`` training steps plays."""
        resign = 0.0
        if self.config.loop.resigns:
            resign = max(0.0, 0.5 + 0.5 * resignation_bound(join(self._window())))
        self._write(
            number=self.turn.number + 1, phase=PLAY, network=step, rows_before=self.turn.wanted,
            wanted=self.turn.wanted + self.config.loop.rows, komi=self._next_komi(), resign=resign,
            first_step=self.learner.step, last_step=self.learner.step,
        )  # fmt: skip
        self._forget()

    def _next_komi(self) -> float:
        """The mean komi of the next turn, closer to the komi at which Black would have won half of this turn's games.

        The network's score of the empty board is no alternative: it lags by the whole window, and a komi that follows
        it oscillates. If games are resigned, only those played out count, since a resigned game has no margin.
        """
        if not self.config.loop.fair_komi:
            return self.config.play.komi
        most, komi, rows = min(self.config.play.size**2, MOST_KOMI), self.turn.komi, self._new_rows()
        games = rows.games
        is_usable = ~rows.quits if np.isnan(games.margin).any() else np.isfinite(games.margin)
        if not is_usable.any():
            return komi
        fair = float(np.clip(np.median((games.result * games.margin + games.komi)[is_usable]), -most, most))
        return float(np.rint(2.0 * (komi + KOMI_STEP * (fair - komi))) / 2.0)

    def _forget(self) -> None:
        """Delete the oldest shards outside the window while all shards together exceed the limit of disk space."""
        rows = self.play.rows
        names = [shard["file"] for shard in rows.shards]
        sizes = [(self.out / ROWS / name).stat().st_size for name in names]
        unused, excess = names.index(self.turn.shards[0]), sum(sizes) - self.config.loop.disk_gib * 2**30
        count = 0
        while count < unused and excess > 0:
            excess -= sizes[count]
            count += 1
        for path in rows.forget(count) if count else []:
            path.unlink(missing_ok=True)
