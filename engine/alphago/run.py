"""The loop of ``keima alphago``: runs each command once, as a child process.

``OUT/alphago.json`` lists the finished commands and their durations, by :meth:`Plan.key`. A command that is not listed,
or whose product is missing, is run, and so are all commands after it, which resume or explain in one line why they
cannot. For each command that was begun the file also has the command's key and the checksums of the files that its text
names, until the folder of its product is deleted. Start at :meth:`Run.run`.
"""

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import dropwhile
from pathlib import Path
from typing import Any

from engine.alphago.stages import Command, Plan, Stage
from engine.config.declaration import core_count
from engine.system.executor import StopOnSignal
from engine.system.files import sha256_of, written_whole
from engine.system.programs import start_child
from engine.system.run_folder import refuse_foreign

RECORD, LOG, PART = "alphago.json", "log.txt", ".part"
MATCH = "match.json"
"""Name of the file with the settings of a match, in the match's folder"""
POLL_S = 0.2


class CommandFailed(RuntimeError):
    """A command ended with an error, which is in the terminal or its log file, or cannot resume; one line."""


class Run:
    """The execution of a plan in its folder, which no other process may use."""

    def __init__(self, plan: Plan) -> None:
        """Begin or resume a run.

        Raises:
            ValueError: the folder contains something else; one line.
        """
        self.plan, self.ended, self.seconds = plan, set[str](), dict[str, float]()
        self._begun: dict[str, Any] = {}
        self._is_due = False
        path = plan.out / RECORD
        if not path.exists():
            refuse_foreign(plan.out, RECORD, "keima alphago")
            plan.out.mkdir(parents=True, exist_ok=True)
            # First of all files, so that a run that is killed in its first command can resume.
            self._write()
            return
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            # In older versions commands did not run in the folder, and their paths began with OUT.
            self.seconds = {key.replace("OUT/", ""): float(value) for key, value in found["seconds"].items()}
            self.ended = {key.replace("OUT/", "") for key in found["ended"]}
            self._begun = dict(found.get("begun", {}))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: not the record of keima alphago ({error})") from error

    def _write(self) -> None:
        record = {"ended": sorted(self.ended), "seconds": self.seconds, "begun": self._begun}
        with written_whole(self.plan.out / RECORD) as partial:
            partial.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    def has_ended(self, command: Command) -> bool:
        """Whether a command is finished and its product exists."""
        return self.plan.key(command) in self.ended and (self.plan.out / command.makes).exists()

    def spent(self, stage: Stage) -> float:
        """Seconds that the commands of a stage have run so far, interrupted ones included."""
        return sum(self.seconds.get(self.plan.key(command), 0.0) for command in stage.commands)

    def run(
        self, stage: Stage, processes: int, begins: Callable[[Command], None], waits: Callable[[], None]
    ) -> None:  # fmt: skip
        """Run the commands of a stage from the first unfinished one on; all, if a command of an earlier stage was run.

        Args:
            processes: number of processes that share a command, if its work can be shared.
            begins: called before a command is started.
            waits: called several times a second while commands run.
        Raises:
            ValueError: a batch cannot be divided equally among the processes.
            CommandFailed: see :class:`CommandFailed`.
            KeyboardInterrupt: Ctrl-C or SIGTERM; all child processes have ended, or were killed at a second signal.
            OSError: a command could not be started, or the record not be written.
        """
        due = list(stage.commands) if self._is_due else list(dropwhile(self.has_ended, stage.commands))
        self._is_due |= bool(due)
        cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(core_count()))
        free: list[int | None] = [*cores[::-1]] if stage.games else [None]
        working: dict[subprocess.Popen[bytes], tuple[Command, int | None, float]] = {}
        is_told = False
        with StopOnSignal() as stop:
            try:
                while working or (due and not stop.asked):
                    while due and free and not stop.asked:
                        command, core = due.pop(0), free.pop()
                        begins(command)
                        working[self._start(command, core, processes)] = command, core, time.monotonic()
                    for process in [one for one in working if one.poll() is not None]:
                        command, core, begun_s = working.pop(process)
                        free.append(core)
                        self._end(command, time.monotonic() - begun_s, process.returncode == 0 and not stop.asked)
                        if process.returncode and not stop.asked:
                            log = f", see {(self.plan.out / command.makes).parent / LOG}" if core is not None else ""
                            raise CommandFailed(f"keima {command.text}: ended with status {process.returncode}{log}")
                    if stop.asked and not is_told:
                        is_told = True
                        for process in working:
                            # As Ctrl-C, which only POSIX has.
                            process.send_signal(signal.SIGINT if os.name == "posix" else signal.SIGTERM)
                    if working:
                        waits()
                        time.sleep(POLL_S)
            finally:
                for process in working:
                    process.kill()
        if stop.asked:
            raise KeyboardInterrupt

    def _start(self, command: Command, core: int | None, processes: int) -> "subprocess.Popen[bytes]":
        """Start a command; one that is bound to a core writes to a log file instead of the terminal."""
        makes = self.plan.out / command.makes
        if makes.suffix and not command.prints:
            self._check_files(command, makes.parent)
        # Not earlier: some commands need a new folder, in which later ones have theirs.
        makes.parent.mkdir(parents=True, exist_ok=True)
        log = None if core is None else makes.parent / LOG
        printed = makes.with_suffix(PART) if command.prints else Path(os.devnull)
        return start_child(command.arguments(processes), core, log, printed, self.plan.out)

    def _check_files(self, command: Command, folder: Path) -> None:
        """Refuse to resume a command if files that its text names have changed since it was begun.

        For commands whose product is a file; those whose product is a folder compare their networks themselves.

        Raises:
            CommandFailed: a file has changed; one line.
        """
        out = self.plan.out
        named = {name for name in re.split(r"[\s=+']", command.text) if name != command.makes}
        files = {name: sha256_of(out / name) for name in sorted(named) if name and (out / name).is_file()}
        now = {"files": files, "command": self.plan.key(command)}
        self._begun = {name: begun for name, begun in self._begun.items() if (out / name).parent.exists()}
        begun = self._begun.setdefault(command.makes, now)
        self._write()
        if begun["files"] != files:
            changed = f"files of this command have changed ({', '.join(files)})"
            raise CommandFailed(f"{folder}: {changed}; delete the folder")
        if begun == now and (folder / MATCH).exists():
            # The same match, though the program or device of its engines may have changed.
            settings = json.loads((folder / MATCH).read_text(encoding="utf-8"))
            words = command.words
            settings |= {role: words[words.index(f"--{role}") + 1] for role in ("first", "second")}
            with written_whole(folder / MATCH) as partial:
                partial.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")

    def _end(self, command: Command, seconds: float, is_done: bool) -> None:
        """Record the end and duration of a command."""
        if is_done and command.prints:
            makes = self.plan.out / command.makes
            makes.with_suffix(PART).replace(makes)
        key = self.plan.key(command)
        self.seconds[key] = self.seconds.get(key, 0.0) + seconds
        self.ended -= {key}
        self.ended |= {key} if is_done else set()
        self._write()
