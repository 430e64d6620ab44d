"""Running the stages: commands as child processes, what has ended is not run again, and the time that is left.

``OUT/alphago.json`` lists the commands that have ended and how long they took, by what they make and of what: the
folder may be spelled otherwise, be moved, or be resumed with another device. A command that is not among them, or whose
product is gone, is run; so are all commands after it then, which resume where they were, or say in a line why they
cannot.
"""

import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.alphago.stages import Command, Stage
from bench.child import start_child
from bench.match.folder import SETTINGS
from bench.match.record import ROLES
from engine.config.declaration import core_count
from engine.system.files import sha256_of, written_whole
from engine.system.run_folder import refuse_foreign
from engine.system.signals import StopOnSignal

RECORD, LOG = "alphago.json", "log.txt"
MADE_FROM = "begun-with.json"
"""Beside what a command makes: checksums of the files that it works with, and what the command is"""
POLL_S = 0.2


class CommandFailed(Exception):
    """A command of a stage ended with an error, which it has told."""


class Observer:
    """Told what happens while stages run; this one ignores it."""

    def begins(self, command: Command) -> None:
        """A command is about to be started."""

    def waits(self) -> None:
        """Commands are running; called several times a second."""


@dataclass
class Record:
    """What has been done in a folder."""

    path: Path
    seconds: dict[str, float] = field(default_factory=dict)
    """of every command that has been run, by its key; interrupted runs count too"""
    ended: set[str] = field(default_factory=set)
    """keys of the commands that have ended well; their texts in folders of earlier versions"""

    @classmethod
    def of(cls, out: Path) -> "Record":
        """What the folder's file says; nothing if there is none.

        Raises:
            ValueError: it cannot be read; one line.
        """
        path = out / RECORD
        if not path.exists():
            refuse_foreign(out, RECORD, "keima alphago")
            fresh = cls(path)
            # Before anything else is in the folder, or a run killed in its first command could not go on.
            fresh.write()
            return fresh
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return cls(path, {key: float(value) for key, value in found["seconds"].items()}, set(found["ended"]))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path}: not the record of keima alphago ({error})") from error

    def write(self) -> None:
        """Write the file, whole or not at all."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(self.path) as partial:
            text = json.dumps({"ended": sorted(self.ended), "seconds": self.seconds}, indent=1)
            partial.write_text(text + "\n", encoding="utf-8")

    def has_ended(self, command: Command) -> bool:
        """Whether a command needs not be run again."""
        return not self.ended.isdisjoint(_known_as(command)) and command.makes.exists()

    def spent(self, stage: Stage) -> float:
        """Seconds that a stage has taken so far."""
        return sum(self.seconds.get(key, 0.0) for command in stage.commands for key in _known_as(command))


def _known_as(command: Command) -> set[str]:
    """What a command may be in a record."""
    return {command.key, command.text}


def run_stage(stage: Stage, record: Record, processes: int, is_due: bool, observer: Observer) -> bool:
    """Run the commands of a stage that have not ended; returns whether there were any.

    Args:
        processes: that share what can be shared.
        is_due: an earlier stage has been run: so are all commands of this one.
        observer: told what happens.
    Raises:
        ValueError: a batch cannot be divided equally among the processes.
        CommandFailed: a command ended with an error, or would go on with what was begun with other files.
        KeyboardInterrupt: Ctrl-C or SIGTERM; all child processes have ended, or were killed at the second one.
        OSError: a command could not be started, or the record not be written.
    """
    first = 0 if is_due else next((i for i, one in enumerate(stage.commands) if not record.has_ended(one)), None)
    if first is None:
        return False
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(core_count()))
    slots: Sequence[int | None] = cores if stage.games else (None,)
    _run_all(stage.commands[first:], slots, record, processes, observer)
    return True


def _run_all(
    due: Sequence[Command], slots: Sequence[int | None], record: Record, processes: int, observer: Observer
) -> None:
    """Run commands, one in each slot at a time; a slot is the core that a command is bound to, None = all."""
    waiting, free = list(due[::-1]), list(slots)[::-1]
    working: dict[Any, tuple[Command, int | None, float]] = {}
    is_passed_on = False
    with StopOnSignal() as stop:
        try:
            while (waiting and not stop.asked) or working:
                while waiting and free and not stop.asked:
                    command, core = waiting.pop(), free.pop()
                    observer.begins(command)
                    # Only now: the folders of some commands must be new, and hold those of later ones.
                    command.makes.parent.mkdir(parents=True, exist_ok=True)
                    _check_files(command)
                    log = None if core is None else command.makes.parent / LOG
                    process = start_child(command.arguments(processes), core, log, _printed(command))
                    working[process] = command, core, time.monotonic()
                for process in [one for one in working if one.poll() is not None]:
                    command, core, begun = working.pop(process)
                    free.append(core)
                    has_ended = process.returncode == 0 and not stop.asked
                    if has_ended and command.prints:
                        _printed(command).replace(command.makes)
                    _enter(record, command, time.monotonic() - begun, has_ended)
                    if process.returncode and not stop.asked:
                        told = f", see {command.makes.parent / LOG}" if core is not None else ""
                        raise CommandFailed(f"{command.text}: ended with status {process.returncode}{told}")
                if stop.asked and not is_passed_on:
                    for process in working:
                        _ask_to_end(process)
                    is_passed_on = True
                if working:
                    observer.waits()
                    time.sleep(POLL_S)
        finally:
            for process in working:
                process.kill()
    if stop.asked:
        raise KeyboardInterrupt


def _check_files(command: Command) -> None:
    """Refuse to go on with what was begun with other files."""
    if not command.made_from:
        return
    path, files = command.makes.parent / MADE_FROM, [sha256_of(one) for one in command.made_from]
    now = {"files": files, "command": command.key}
    if not path.exists():
        with written_whole(path) as partial:
            partial.write_text(json.dumps(now) + "\n", encoding="utf-8")
        return
    begun = json.loads(path.read_text(encoding="utf-8"))
    # Earlier versions wrote the checksums alone.
    if (begun["files"] if isinstance(begun, dict) else begun) != files:
        names = ", ".join(one.name for one in command.made_from)
        raise CommandFailed(f"{path.parent}: begun with other files than there are now ({names}); delete the folder")
    if begun == now:
        _respell(command)


def _respell(command: Command) -> None:
    """Let a match resume whose engines are the same, though their files and device may be spelled otherwise by now."""
    path = command.makes.parent / SETTINGS
    if command.words[0] != "match" or not path.exists():
        return
    settings = json.loads(path.read_text(encoding="utf-8"))
    settings |= {role: command.words[command.words.index(f"--{role}") + 1] for role in ROLES}
    with written_whole(path) as partial:
        partial.write_text(json.dumps(settings, indent=1) + "\n", encoding="utf-8")


def _ask_to_end(process: "subprocess.Popen[bytes]") -> None:
    """Ctrl-C for a child process, where there is such a thing."""
    if os.name == "posix":
        process.send_signal(signal.SIGINT)
    else:
        process.terminate()


def _enter(record: Record, command: Command, seconds: float, has_ended: bool) -> None:
    """Note a run of a command."""
    seconds += sum(record.seconds.pop(key, 0.0) for key in _known_as(command))
    record.seconds[command.key] = seconds
    record.ended -= _known_as(command)
    if has_ended:
        record.ended.add(command.key)
    record.write()


def _printed(command: Command) -> Path:
    """Where standard output of a command goes while it runs."""
    return command.makes.with_suffix(".part") if command.prints else Path(os.devnull)
