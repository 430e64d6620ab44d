"""The ladder of ``keima zero``: fixed opponents that a network plays while the run goes on, and the Elo they give.

    OUT/ladder.jsonl     a line a match: who played whom, how often the first one won, drew and lost, seconds
    OUT/gnugo/00001200/  the match of a network against GNU Go (``keima match``)

Opponents are random moves (no suicide, no own eye filled, no pass while there is another move), earlier networks of the
run, and GNU Go where it is installed. Networks play by small searches, always of the same visits, since each has one
rating; all games of a match side by side. The ladder takes a share of the run's time, so not every network plays.
"""

import json
import shlex
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.evaluation.elo import Rated, rated, weakest
from engine.selfplay.search_match import Outcome
from engine.system.programs import find_gnugo, gnugo, keima, start_child
from engine.system.work_folder import add_line, read_lines
from engine.zero.loop import Zero
from engine.zero.options import LadderOptions

LADDER, GNUGO_FOLDER = "ladder.jsonl", "gnugo"
RANDOM, GNUGO = "random", "gnugo"
BEATEN = 0.98
"""Share of points at which random moves say nothing any more"""
GNUGO_S = 60.0
"""What the first match against GNU Go is taken to last"""
POLL_S = 0.5


@dataclass(frozen=True)
class Match:
    """One match that was played."""

    first: str
    second: str
    outcome: Outcome
    seconds: float


def name_of(step: int) -> str:
    """A network as the ladder calls it."""
    return f"network {step}"


def read_ladder(path: Path) -> list[Match]:
    """The matches of a file; none if there is no file.

    Raises:
        ValueError: a line is no match; one line naming it.
        OSError: the file cannot be read.
    """
    return read_lines(path, _read, "match of a ladder")


def _read(line: bytes) -> Match:
    """The match of a line; raises ValueError, KeyError or TypeError where it is none."""
    one = json.loads(line)
    outcome = Outcome(*(int(one[name]) for name in Outcome._fields))
    return Match(str(one["first"]), str(one["second"]), outcome, float(one["seconds"]))


def standings(matches: list[Match]) -> list[Rated]:
    """All players in the order in which they came, that of :func:`reference_of` being 0."""
    names = dict.fromkeys(name for match in matches for name in (match.second, match.first))
    found = {one.name: one for one in rated(_wins(matches), reference_of(matches))}
    return [found[name] for name in names]


def reference_of(matches: list[Match]) -> str:
    """The player who is 0: random moves or, before they have played, the weakest."""
    wins = _wins(matches)
    return RANDOM if any(RANDOM in pair for pair in wins) else weakest(wins)


def _wins(matches: list[Match]) -> dict[tuple[str, str], float]:
    """Winner and loser, and how often; a draw as half a win for each."""
    wins: dict[tuple[str, str], float] = {}
    for match in matches:
        for pair, points in (
            ((match.first, match.second), match.outcome.points),
            ((match.second, match.first), match.outcome.games - match.outcome.points),
        ):
            wins[pair] = wins.get(pair, 0.0) + points
    return wins


class Ladder:
    """Plays a run's networks; called by the loop after each of them (:data:`engine.zero.loop.Check`)."""

    def __init__(self, out: Path, options: LadderOptions) -> None:
        """Read what was played; errors as of :func:`read_ladder`."""
        self._path, self._options = out / LADDER, options
        self.matches = read_ladder(self._path)

    def __call__(self, zero: Zero, path: Path) -> None:
        """Play a new network against those opponents that it has not met, while there is time for them."""
        first = name_of(zero.learner.step)
        played = {match.second for match in self.matches if match.first == first}
        share = self._options.ladder_share
        if played or (share > 0.0 and self._spent() <= share * zero.seconds):
            for name, opponent in self._opponents(zero):
                if name not in played and not zero.is_stopped:
                    self._play(zero, first, path, name, opponent)
        if GNUGO not in played and (program := find_gnugo()) and not zero.is_stopped:
            folder = zero.out / GNUGO_FOLDER / path.stem
            # A match takes as long as the one before, and begins once the share has room for it.
            expected = next((match.seconds for match in self.matches[::-1] if match.second == GNUGO), GNUGO_S)
            if folder.exists() or self._spent(GNUGO) + expected <= self._options.gnugo_share * zero.seconds:
                self._play_gnugo(zero, first, path, folder, program)

    def _spent(self, opponent: str = "") -> float:
        """Seconds that matches took: those against one opponent, or all but those against GNU Go."""
        chosen = [match for match in self.matches if (match.second == opponent if opponent else match.second != GNUGO)]
        return sum(match.seconds for match in chosen)

    def _opponents(self, zero: Zero) -> Iterator[tuple[str, Path | None]]:
        """Whom a network plays: random moves until they say nothing, the last one rated, and one half as old."""
        against_random = [match.outcome for match in self.matches if match.second == RANDOM]
        if not against_random or against_random[-1].points < BEATEN * against_random[-1].games:
            yield RANDOM, None
        now = zero.learner.step
        known = {int(match.first.split()[-1]) for match in self.matches}
        earlier = sorted(step for step in known if step < now and zero.networks.path(step).exists())
        wanted = {earlier[-1], min(earlier, key=lambda step: abs(2 * step - now))} if earlier else set()
        for step in sorted(wanted, reverse=True):
            yield name_of(step), zero.networks.path(step)

    def _play(self, zero: Zero, first: str, path: Path, name: str, opponent: Path | None) -> None:
        """One match by small searches; entered when it is over."""
        options, begun_s = self._options, time.monotonic()
        zero.progress.at("ladder", 0, 1, f"{options.ladder_games} games of {first} against {name}; then self-play")
        visits = options.ladder_visits, options.ladder_visits if opponent else 1
        if outcome := zero.match((path, opponent), visits, options.ladder_games):
            self._ended(zero, Match(first, name, outcome, time.monotonic() - begun_s))

    def _ended(self, zero: Zero, match: Match) -> None:
        """Keep a match, and tell how it went."""
        self._enter(match)
        ranked = standings(self.matches)
        own = next(one for one in ranked if one.name == match.first)
        zero.progress.say(
            f"ladder: {match.first} against {match.second}: {match.outcome.won} won, {match.outcome.drawn} drawn, "
            f"{match.outcome.lost} lost; Elo {own.elo:.0f} ({own.low:.0f} to {own.high:.0f}), "
            f"{reference_of(self.matches)} being 0"
        )

    def _enter(self, match: Match) -> None:
        """Keep a match."""
        self.matches.append(match)
        line = {"first": match.first, "second": match.second, **match.outcome._asdict(), "seconds": match.seconds}
        add_line(self._path, json.dumps(line))

    def _play_gnugo(self, zero: Zero, first: str, path: Path, folder: Path, program: str) -> None:
        """A match against GNU Go, by ``keima match``; what was played is kept where it is stopped."""
        options, play, begun_s = self._options, zero.config.play, time.monotonic()
        # Games differ by the first moves of the network.
        engine = keima(
            "gtp", "--config", "none", "--weights", path, "--size", play.size, "--visits", options.ladder_visits,
            "--temperature", 0.5, "--temperature-moves", play.size,
        )  # fmt: skip
        rival = gnugo(program, options.gnugo_level)
        folder.mkdir(parents=True, exist_ok=True)
        summary = folder / "summary.json"
        command = keima(
            "match", "--first", shlex.join(engine), "--second", shlex.join(rival), "--first-name", first,
            "--second-name", GNUGO, "--size", play.size, "--komi", f"{play.komi:g}", "--games", options.gnugo_games,
            "--sgf", folder, "--json", summary,
        )  # fmt: skip
        log = folder / "log.txt"
        process = start_child(command, None, log)
        while process.poll() is None:
            games = (folder / "games.jsonl").read_bytes().count(b"\n") if (folder / "games.jsonl").exists() else 0
            zero.progress.at("ladder", games, options.gnugo_games, f"{first} against GNU Go; then self-play")
            if zero.is_stopped:
                process.send_signal(signal.SIGINT)
                process.wait()
                return
            time.sleep(POLL_S)
        if process.returncode:
            zero.progress.say(f"the match against GNU Go ended with status {process.returncode}, see {log}")
            return
        found = json.loads(summary.read_text(encoding="utf-8"))["all"]
        outcome = Outcome(found["won"], found["drawn"], found["lost"])
        self._ended(zero, Match(first, GNUGO, outcome, time.monotonic() - begun_s))
