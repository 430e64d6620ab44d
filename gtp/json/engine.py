"""The conversation: a line of JSON comes in, errors and warnings go out at once, analyses when they are done.

Threads: lines are taken by one thread; answers are given by those that analyse.
"""

import json
import math
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from typing import Any

from engine import __version__
from engine.go.board import META_SIZE
from engine.go.position import META_TO_MOVE
from engine.insight.analyses import Analyses, Analysis, Job, Task
from gtp.json.answer import Answer
from gtp.json.query import Query, Turn, read_query
from gtp.json.settings import Settings
from gtp.json.values import FieldError, integers, parse_line, to_line

KATAGO_VERSION = "1.17.2"
"""Whose protocol this is: clients ask for the version to know what they may send"""
ACTIONS = "'action' field must be 'query_version' or 'query_models' or 'clear_cache' or 'terminate' or 'terminate_all'"
TURNS = "If provided, must be an array of integers indicating turns to terminate"
NO_TERMINATE_ID = 'Requests for a terminate action must have a string "terminateId" field'


class JsonEngine:
    """Answers requests. Threads: one calls what is public."""

    def __init__(self, analyses: Analyses, defaults: Settings, write: Callable[[str], None],
                 models: list[dict[str, Any]], is_full: Callable[[], bool] = lambda: False) -> None:  # fmt: skip
        """Make an engine that has nothing to do yet.

        Args:
            write: sends a line and returns at once; called by one thread at a time.
            models: the networks, as ``query_models`` answers.
            is_full: whether so much waits to be read that reports during searches, which the next ones replace, are
                left out.
        """
        self._analyses, self._defaults, self._write, self._models = analyses, defaults, write, models
        self._is_full = is_full
        self._open: dict[tuple[str, int], list[Job]] = {}
        """jobs that have not been answered, by id and turn"""
        self._lock = threading.Lock()
        self._is_mute = False

    def take(self, line: str) -> None:
        """Act on one line of input; whatever is wrong with it is answered, since others wait for theirs."""
        text = line.strip()
        if not text:
            return
        try:
            request = parse_line(text)
        except ValueError as error:
            self._send({"error": f"{error} - could not parse input line as json request: {text}"})
            return
        name = request.get("id") if isinstance(request, dict) else None
        about = {"id": name} if isinstance(name, str) else {}
        try:
            self._answer(request)
        except FieldError as error:
            self._send(about | {"error": str(error), "field": error.field})
        except Exception as error:
            traceback.print_exc(file=sys.stderr)
            reason = " ".join(str(error).split())
            self._send(about | {"error": f"internal error: {type(error).__name__}: {reason}"})

    def finish(self) -> None:
        """Answer all that waits."""
        self._analyses.finish()

    def close(self) -> None:
        """End without answers to what waits."""
        with self._lock:
            self._is_mute = True
        self._analyses.close()

    def _answer(self, request: Any) -> None:
        """Do what a request asks for.

        Raises:
            FieldError: one of its fields is wrong.
        """
        if not isinstance(request, dict):
            shown = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
            self._send({"error": f"Request line was valid json but was not an object, ignoring: {shown}"})
        elif not isinstance(request.get("id"), str):
            self._send({"error": 'Request must have a string "id" field'})
        else:
            self._act(request)

    def _act(self, request: dict[str, Any]) -> None:
        """Do what an object that has an id asks for; errors as of :meth:`_answer`."""
        action = request.get("action")
        if not isinstance(action, str):
            self._queue(request)
        elif action == "query_version":
            self._send(request | {"version": KATAGO_VERSION, "git_hash": f"keima-{__version__}"})
        elif action == "query_models":
            self._send(request | {"models": self._models})
        elif action == "clear_cache":
            self._analyses.forget()
            self._send(request)
        elif action in ("terminate", "terminate_all"):
            self._terminate(request, is_for_all=action == "terminate_all")
        else:
            self._send({"error": ACTIONS})

    def _terminate(self, request: dict[str, Any], is_for_all: bool) -> None:
        """End queries as they stand."""
        wanted = request.get("terminateId")
        if not is_for_all and not isinstance(wanted, str):
            raise FieldError("terminateId", NO_TERMINATE_ID)
        turns = set(integers(request, "turnNumbers", TURNS)) if "turnNumbers" in request else None
        with self._lock:
            found = [
                job
                for (name, turn), jobs in self._open.items()
                if (is_for_all or name == wanted) and (turns is None or turn in turns)
                for job in jobs
            ]
        self._analyses.end(found)
        self._send(request)

    def _queue(self, request: dict[str, Any]) -> None:
        """Check a query and queue its turns."""
        warn = partial(self._warn, request["id"])
        query = read_query(request, self._defaults, warn, lambda settings: self._analyses.parts_of(settings.search))
        jobs = [self._job(query, turn) for turn in query.turns]
        with self._lock:
            for turn, job in zip(query.turns, jobs, strict=True):
                self._open.setdefault((query.id, turn.number), []).append(job)
        self._analyses.submit(jobs)

    def _job(self, query: Query, turn: Turn) -> Job:
        """The job of one turn."""
        settings = query.settings
        task = Task(
            turn.position,
            settings.search,
            min(settings.visits, settings.playouts or settings.visits),
            settings.seconds,
            query.moves,
            query.wanted.policy,
            query.wanted.any_ownership,
            query.every_s or math.inf,
            query.first_s or math.inf,
        )

        def tell(found: Analysis | None, goes_on: bool) -> None:
            if goes_on and self._is_full():
                return
            about = {"id": query.id, "isDuringSearch": goes_on, "turnNumber": turn.number}
            if found is None:
                self._send(about | {"noResults": True})
            else:
                position = turn.position
                size, to_move = int(position.board.meta[META_SIZE]), int(position.meta[META_TO_MOVE])
                self._send(about | Answer(found, size, to_move, query.wanted).object())
            if not goes_on:
                self._forget(query.id, turn.number, job)

        def fail(reason: str) -> None:
            print(f"keima: {reason}", file=sys.stderr, flush=True)
            self._send({"error": reason, "id": query.id, "turnNumber": turn.number})
            self._forget(query.id, turn.number, job)

        job = Job(task, turn.priority, tell, fail)
        return job

    def _forget(self, name: str, turn: int, job: Job) -> None:
        """A job has had its last answer."""
        with self._lock:
            left = [one for one in self._open[name, turn] if one is not job]
            if left:
                self._open[name, turn] = left
            else:
                del self._open[name, turn]

    def _warn(self, name: str, field: str, text: str) -> None:
        """Send a warning about a field of a request."""
        self._send({"warning": text, "field": field, "id": name})

    def _send(self, value: dict[str, Any]) -> None:
        """Write an object."""
        line = to_line(value)
        with self._lock:
            if not self._is_mute:
                self._write(line + "\n")
