"""``python -m bench.learner``: trains the shipped network further on idle cores, in rounds without end.

A round (1) collects positions from searches of the current network, (2) labels some of them by a strong network, the
judge, (3) trains on the labels, and on the other positions and human games, for which a fast network, the teacher,
computes most targets during training, (4) evaluates the result on held-out positions, and (5) if it is better there
than the shipped network, matches the two in the arena. Every phase is a command that resumes, so the learner may be
killed at any time; the next start resumes in the same folder.

Linux only: a pause is SIGSTOP, and child processes are killed with their parent.
"""

import csv
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from engine.nets.files.header import read_header
from engine.records.games import shard_files
from engine.system.files import alone_in, written_whole
from engine.system.programs import keima, start_child
from engine.system.run_folder import add_line, open_manifest
from weights import DEFAULT, find_network, identity

ARENA = (sys.executable, "-P", "-m", "bench.strength.arena")
NICENESS = 19
POLL_S, RETRY_S = 5.0, 60.0
REACHED_ROUNDS = 8
"""Number of latest rounds from which training takes unlabelled positions of searches; it takes labels of all rounds"""

RULES = ("--rules", "chinese=4", "--rules", "tromp-taylor=4", "--rules", "japanese=2")
KOMI = ("--komi", "usual=5", "--komi", "5.5..9.5=4", "--komi=-5..20=1")
# (board size, positions a round, positions labelled by the judge, options). On 19x19 few positions of each of many
# games, a third of them for the teacher; on small boards, whose strength only has to be kept, the judge labels all.
REACHED = (
    (19, 12_000, 8_000, ("--full-share", "0.05", "--komi", "7.5")),
    (13, 1_000, 1_000, ("--full-share", "0.08", "--komi", "7.5")),
    (9, 3_000, 3_000, ("--full-share", "1", "--visits", "50", "--draws", "2", "--komi", "7")),
)
HUMAN_LABELS = 4_000
STEPS = 6_000
"""Number of steps of a round; by the measured rates of its phases a round takes two and a half hours of two processors
without bfloat16"""
TRAINING = (
    # At 8e-4 the first 50,000 positions made the network worse (docs/lab/2026-11-29-the-teachers-trunk.md).
    "--optimizer", "muon", "--rate", "4e-4", "--warmup", "200", "--decay-share", "0.6", "--ema", "0.999",
    "--batch", "64", "--boards", "19=0.75", "--boards", "13=0.1", "--boards", "9=0.15",
    "--label-share", "0.25", "--reached-share", "0.5", "--teacher-share", "0.8",
    "--value-weight", "2", "--score-weight", "2.5", "--ownership-weight", "1.5",
    "--validate-every", "1000000", "--steps", str(STEPS),
)  # fmt: skip
MEAN_SHARES = (0.3, 0.6)
"""Share of the shipped network in means of its parameters and the trained network's; the means are candidates too"""
MEASURED = {
    "value_mse": "value_mse", "top1": "top1", "reached/value_mse": "value_mse/19",
    "reached/top1": "teacher_top1/19", "reached/policy_kl": "policy_kl/19",
}  # fmt: skip
"""Metric in ``curve.csv`` -> its key in the report of ``keima evaluate``"""
MEASURE = "measure "
"""Beginning of the names of phases that measure a network"""
CRITERIA = ("value_mse", "reached/policy_kl")
"""Metrics of which the best candidate of a round has the lowest sum; it goes to the arena if both are lower than the
shipped network's"""


@dataclass(frozen=True)
class Phase:
    """One command of the learner, skipped if the file that it makes exists.

    Attributes:
        name: unique in its round.
        command: a command that resumes when it is run again.
        makes: file that exists once the phase is finished; the learner writes it if the command does not.
        is_printed: whether the command's standard output becomes the file ``makes``.
    """

    name: str
    command: tuple[str, ...]
    makes: Path
    is_printed: bool = False


class Learner:
    """Trains the shipped network in rounds without end; one folder holds all results, and a new start resumes there."""

    def __init__(self, folder: Path, sources: dict[str, Any]) -> None:
        """Start in ``folder``, or resume there.

        Args:
            sources: paths of data and networks, by the names of the options of :func:`run`.
        Raises:
            ValueError: there are no games; one line.
        """
        self.folder, self.sources = folder, sources
        self.shipped = str(find_network(DEFAULT))
        self.shards = shard_files([Path(sources["games"])], Path(sources["validation"]))

    def run(self) -> None:
        """Run round after round until killed."""
        self._run_all(self._held_out())
        self._measure("0 default", self.shipped, self.folder / "held" / "default.json")
        number = 1
        while True:
            self._round(number)
            number += 1

    def _round(self, number: int) -> None:
        here = self._of_round(number)
        here.mkdir(parents=True, exist_ok=True)
        self._run_all(self._data(number))
        self._run_all([self._training(number)])
        candidates = {"network": here / "train" / "network.safetensors"}
        for share in MEAN_SHARES:
            mean = here / f"mean-{share}.safetensors"
            command = keima("weights", "average", candidates["network"], self.shipped, mean, "--share", share)
            self._run_all([Phase(mean.stem, tuple(command), mean)])
            candidates[mean.stem] = mean
        for name, network in candidates.items():
            self._measure(f"{number} {name}", str(network), here / f"{name}.json")
        found = {name: _measured(here / f"{name}.json") for name in candidates}
        best = min(candidates, key=lambda name: sum(found[name][key] for key in CRITERIA))
        now, before = found[best], _measured(self.folder / "held" / "default.json")
        if all(now[key] < before[key] for key in CRITERIA):
            self._arena(number, candidates[best])

    def _held_out(self) -> list[Phase]:
        """Phases that collect held-out positions from searches of the shipped network, and label them."""
        held = self.folder / "held"
        reached, labels = held / "reached-19", held / "labels-19"
        return [
            Phase("reached", tuple(keima("data", "reached", self.shipped, "--size", 19, "--komi", 7.5, "--seed", 99,
                                         "--out", reached, "--positions", 2400, "--full-share", 0.01, "--draws", 1)),
                  held / "reached.done"),
            self._labelling("labels", reached, labels, 19, 2400, 1, held),
        ]  # fmt: skip

    def _data(self, number: int) -> Iterator[Phase]:
        """Phases that collect positions from searches of the network that a round starts from, and label positions.

        The judge labels some of the collected positions, and positions of human games.
        """
        here, network = self._of_round(number), self._start(number)
        for size, positions, labelled, options in REACHED:
            reached = here / f"reached-{size}"
            command = keima("data", "reached", network, "--size", size, "--out", reached,
                            "--positions", positions, *options, "--seed", 1000 + number)  # fmt: skip
            yield Phase(f"reached-{size}", tuple(command), here / f"reached-{size}.done")
            yield self._labelling(f"labels-{size}", reached, here / f"labels-{size}", size, labelled, number, here)
        shard = self.shards[number % len(self.shards)]
        yield self._labelling("labels-human", shard, here / "labels-human", 19, HUMAN_LABELS, number, here, 200)

    def _labelling(
        self, name: str, source: Path, out: Path, size: int, positions: int, seed: int, here: Path, every: int = 1
    ) -> Phase:
        command = keima("data", "label", source, "--recorded", size, "--network", self.sources["judge"], "--out", out,
                        "--positions", positions, "--every", every, "--seed", seed, *RULES, *KOMI)  # fmt: skip
        return Phase(name, tuple(command), here / f"{name}.done")

    def _training(self, number: int) -> Phase:
        here = self._of_round(number)
        rounds = [self._of_round(other) for other in range(1, number + 1)]
        command = keima("train", "dual", "--games", self.sources["games"], "--out", here / "train",
                        "--start", self._start(number), "--teacher", self.sources["teacher"], "--seed", number,
                        "--validation", self.sources["validation"], *TRAINING, *RULES, *KOMI)  # fmt: skip
        for one in rounds[-REACHED_ROUNDS:]:
            command += ["--games", str(one / "reached-19")]
        for one in rounds:
            for name in ("labels-19", "labels-13", "labels-9", "labels-human"):
                command += ["--labels", str(one / name)]
        for path in self.sources["labels"]:
            command += ["--labels", path]
        return Phase("train", tuple(command), here / "train.done")

    def _measure(self, name: str, network: str, report: Path) -> None:
        """Measure a network, ``name`` being the round's number and the network's name, and write the curve."""
        held = self.folder / "held" / "labels-19"
        command = keima("evaluate", network, self.sources["validation"], "--positions", 8000,
                        "--labels", held / "labels-00000.npz.xz", "--json")  # fmt: skip
        self._run_all([Phase(f"{MEASURE}{name}", tuple(command), report, is_printed=True)])
        with written_whole(self.folder / "curve.csv") as part, part.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(("network", "steps", "hours", *MEASURED))
            rows.writerows(self._curve())

    def _curve(self) -> Iterator[list[Any]]:
        """The rows of ``curve.csv``, one for each report, from the reports, the diary and the networks' headers."""
        path, seconds, rows = self.folder / "diary.jsonl", 0.0, dict[str, list[Any]]()
        for line in path.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            seconds += float(entry["seconds"])
            if entry["phase"].startswith(MEASURE) and (report := self.folder / entry["makes"]).exists():
                name = entry["phase"].removeprefix(MEASURE)
                steps = sum(self._steps(number) for number in range(1, 1 + int(name.split()[0])))
                figures = (f"{value:.4f}" for value in _measured(report).values())
                rows[name] = [name, steps, f"{seconds / 3600:.2f}", *figures]
        yield from rows.values()

    def _steps(self, number: int) -> int:
        """The number of steps of a round's training."""
        header = read_header(self._of_round(number) / "train" / "network.safetensors")
        return int(header["training"]["step"])

    def _arena(self, number: int, network: Path) -> None:
        for size, visits, games, komi, opening in ((19, 32, 40, 7.5, 8), (9, 100, 60, 7.0, 6)):
            out = self._of_round(number) / f"arena-{size}"
            command = (*ARENA, "--first", f"weights={network} name=new", "--second",
                       f"weights={self.shipped} name=default", "--size", str(size), "--visits", str(visits),
                       "--games", str(games), "--komi", str(komi), "--opening-moves", str(opening), "--processes", "2",
                       "--sgf", str(out), "--json", str(out) + ".json")  # fmt: skip
            self._run_all([Phase(f"arena-{size}", command, Path(str(out) + ".txt"), is_printed=True)])

    def _run_all(self, phases: Sequence[Phase] | Iterator[Phase]) -> None:
        for phase in phases:
            while not phase.makes.exists():
                if not self._run(phase):
                    time.sleep(RETRY_S)

    def _run(self, phase: Phase) -> bool:
        """Run a phase once; returns whether it succeeded."""
        begun, last = time.time(), time.monotonic()
        spent = 0.0
        partial = phase.makes.with_name(phase.makes.name + ".partial")
        phase.makes.parent.mkdir(parents=True, exist_ok=True)
        log, printed = self.folder / "log.txt", partial if phase.is_printed else None
        child = start_child(list(phase.command), None, log, printed)
        while (status := child.poll()) is None:
            time.sleep(POLL_S)
            now = time.monotonic()
            # A far longer interval was a pause.
            spent, last = spent + min(now - last, 2 * POLL_S), now
        line = {"phase": phase.name, "makes": str(phase.makes.relative_to(self.folder)), "begun": round(begun),
                "seconds": round(spent), "exit": status}  # fmt: skip
        add_line(self.folder / "diary.jsonl", json.dumps(line))
        if status != 0:
            return False
        if phase.is_printed:
            partial.replace(phase.makes)
        elif not phase.makes.exists():
            with written_whole(phase.makes) as part:
                part.write_text(json.dumps(line) + "\n", encoding="utf-8")
        return True

    def _of_round(self, number: int) -> Path:
        return self.folder / "rounds" / f"{number:03d}"

    def _start(self, number: int) -> str:
        """Path of the network that a round starts from: the one trained in the last round, or first the shipped one."""
        return str(self._of_round(number - 1) / "train" / "network.safetensors") if number > 1 else self.shipped


def _measured(report: Path) -> dict[str, float]:
    """The metrics of a report of ``keima evaluate``, under their names in ``curve.csv``."""
    found = json.loads(report.read_text(encoding="utf-8"))
    return {name: found[key] for name, key in MEASURED.items()}


def _family(pid: int) -> list[int]:
    """Ids of a process and all its descendants, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        children.setdefault(int(fields[1]), []).append(int(entry.parent.name))
    found = [pid]
    for one in found:
        found += children.get(one, [])
    return found


def _signal(folder: Path, number: int) -> None:
    """Send a signal to the learner in a folder and all its descendants."""
    try:
        with alone_in(folder):
            pass
    except ValueError:
        # The lock is a running learner's, so the number in the file is its own and not of another, later process.
        for one in _family(int((folder / "pid").read_text(encoding="utf-8"))):
            with suppress(ProcessLookupError):
                os.kill(one, number)
        return
    raise click.ClickException(f"no learner runs in {folder}")


PLACE = click.Path(exists=True, resolve_path=True)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Train the shipped network further on idle cores; a run resumes in its folder after any kill."""


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--games", type=PLACE, required=True, help="folder of shards of human games on 19x19")
@click.option("--validation", type=PLACE, required=True, help="shard of held-out human games")
@click.option("--labels", type=PLACE, multiple=True, help="folder of earlier labels by the judge; repeatable")
@click.option("--teacher", type=PLACE, required=True, help="file of the network that evaluates positions in training")
@click.option("--judge", type=PLACE, required=True, help="file of the strong network that labels positions")
def run(folder: Path, **given: Any) -> None:
    """Start learning in FOLDER, or resume it."""
    folder = folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    os.nice(NICENESS)
    try:
        with alone_in(folder):
            shipped = identity(find_network(DEFAULT), DEFAULT)
            open_manifest(folder / "learner.json", given | {"shipped": shipped})
            (folder / "pid").write_text(str(os.getpid()), encoding="utf-8")
            Learner(folder, given).run()
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
def pause(folder: Path) -> None:
    """Pause all processes of the learner in FOLDER, to free the cores."""
    _signal(folder, signal.SIGSTOP)


@main.command("continue")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
def resume(folder: Path) -> None:
    """Continue the paused learner in FOLDER."""
    _signal(folder, signal.SIGCONT)


if __name__ == "__main__":
    main()
