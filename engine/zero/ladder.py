"""The ladder of ``keima zero``: matches against fixed opponents during the run, and Elo ratings from them.

    OUT/ladder.jsonl     one line per match: players, wins, draws and losses of the first player, seconds
    OUT/gnugo/00001200/  the match of a network against GNU Go (``keima match``)

Opponents are a random player (no suicide, no filling of own eyes, no pass while another move is left), earlier networks
of the run, and GNU Go if it is installed. Networks play by small searches with constant visits, so that each has one
rating; all games of a match are played in parallel. The ladder takes a share of the run's time, so not every network
plays.
"""

import json
import shlex
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from engine.evaluation.elo import Rated, rated, weakest
from engine.selfplay.search_match import Outcome
from engine.system.programs import find_gnugo, gnugo, keima, start_child
from engine.system.run_folder import add_line, read_lines
from engine.zero.loop import Zero
from engine.zero.options import LadderOptions

LADDER, GNUGO_FOLDER = "ladder.jsonl", "gnugo"
RANDOM, GNUGO = "random", "gnugo"
BEATEN = 0.98
"""Win rate of a network from which the random player is too weak an opponent to measure later ones"""
GNUGO_S = 60.0
"""Expected seconds of the first match against GNU Go"""
POLL_S = 0.5


@dataclass(frozen=True)
class Match:
    """A finished match of the ladder."""

    first: str
    second: str
    outcome: Outcome
    seconds: float


def name_of(step: int) -> str:
    """A network's name in the ladder."""
    return f"network {step}"


def read_ladder(path: Path) -> list[Match]:
    """The matches in a ladder's file; none if there is no file.

    Raises:
        ValueError: a line is not a match; one line.
        OSError: the file cannot be read.
    """
    return read_lines(path, _read, "match of a ladder")


def _read(line: bytes) -> Match:
    """Parse a line; raises ValueError, KeyError or TypeError if it is not a match."""
    one = json.loads(line)
    outcome = Outcome(*(int(one[name]) for name in Outcome._fields))
    return Match(str(one["first"]), str(one["second"]), outcome, float(one["seconds"]))


def standings(matches: list[Match]) -> list[Rated]:
    """Ratings of all players in the order of their first matches; :func:`reference_of` has Elo 0."""
    names = dict.fromkeys(name for match in matches for name in (match.second, match.first))
    found = {one.name: one for one in rated(_wins(matches), reference_of(matches))}
    return [found[name] for name in names]


def reference_of(matches: list[Match]) -> str:
    """The player with Elo 0: the random player or, before its first match, the weakest."""
    wins = _wins(matches)
    return RANDOM if any(RANDOM in pair for pair in wins) else weakest(wins)


def _wins(matches: list[Match]) -> dict[tuple[str, str], float]:
    """Number of wins by winner and loser, a draw counting half a win for each."""
    wins = defaultdict[tuple[str, str], float](float)
    for match in matches:
        wins[match.first, match.second] += match.outcome.points
        wins[match.second, match.first] += match.outcome.games - match.outcome.points
    return wins


class Ladder:
    """Plays the matches of a run; called by the loop with each new network (:data:`engine.zero.loop.Check`)."""

    def __init__(self, out: Path, options: LadderOptions) -> None:
        """Read the earlier matches; errors as of :func:`read_ladder`."""
        self._path, self._options = out / LADDER, options
        self.matches = read_ladder(self._path)

    def __call__(self, zero: Zero, path: Path) -> None:
        """Play a new network against the opponents that it has not met, within the ladder's share of time."""
        first = name_of(zero.learner.step)
        played = {match.second for match in self.matches if match.first == first}
        share = self._options.ladder_share
        if played or (share > 0.0 and self._spent() <= share * zero.seconds):
            for name, opponent in self._opponents(zero):
                if name not in played and not zero.is_stopped:
                    self._play(zero, first, path, name, opponent)
        if GNUGO not in played and (program := find_gnugo()) and not zero.is_stopped:
            folder = zero.out / GNUGO_FOLDER / path.stem
            # The previous match predicts the duration of the next, which begins once the share of time allows it.
            expected = next((match.seconds for match in self.matches[::-1] if match.second == GNUGO), GNUGO_S)
            if folder.exists() or self._spent(GNUGO) + expected <= self._options.gnugo_share * zero.seconds:
                self._play_gnugo(zero, first, path, folder, program)

    def _spent(self, opponent: str = "") -> float:
        """Seconds of all matches against an opponent; by default of all matches except those against GNU Go."""
        chosen = [match for match in self.matches if (match.second == opponent if opponent else match.second != GNUGO)]
        return sum(match.seconds for match in chosen)

    def _opponents(self, zero: Zero) -> Iterator[tuple[str, Path | None]]:
        """Opponents of the new network: the random player until it is ``BEATEN``, the last network in the ladder, and
        the one whose training steps are closest to half the new network's."""
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
        """Play one match of the new network by small searches, and record it; ``opponent`` None = the random player."""
        options, begun_s = self._options, time.monotonic()
        zero.progress.at("ladder", 0, 1, f"{options.ladder_games} games of {first} against {name}; then self-play")
        visits = options.ladder_visits, options.ladder_visits if opponent else 1
        if outcome := zero.match((path, opponent), visits, options.ladder_games):
            self._ended(zero, Match(first, name, outcome, time.monotonic() - begun_s))

    def _ended(self, zero: Zero, match: Match) -> None:
        """Record a finished match and report it with the new ratings."""
        self._enter(match)
        ranked = standings(self.matches)
        own = next(one for one in ranked if one.name == match.first)
        zero.progress.say(
            f"ladder: {match.first} against {match.second}: {match.outcome.won} won, {match.outcome.drawn} drawn, "
            f"{match.outcome.lost} lost; Elo {own.elo:.0f} ({own.low:.0f} to {own.high:.0f}), "
            f"{reference_of(self.matches)} = 0"
        )

    def _enter(self, match: Match) -> None:
        """Add a match to the list and the file."""
        self.matches.append(match)
        line = {"first": match.first, "second": match.second, **match.outcome._asdict(), "seconds": match.seconds}
        add_line(self._path, json.dumps(line))

    def _play_gnugo(self, zero: Zero, first: str, path: Path, folder: Path, program: str) -> None:
        """Play a match against GNU Go by ``keima match``, which resumes a stopped match."""
        options, play, begun_s = self._options, zero.config.play, time.monotonic()
        # The temperature of the network's first moves makes games differ.
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
