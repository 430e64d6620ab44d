"""The analysis engine: takes lines of JSON; sends errors and warnings at once, and analyses when they are finished.

Threads: one thread takes lines; the analysing threads send answers.
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
from engine.system import whole_line
from gtp.json.answer import Answer
from gtp.json.query import Query, Turn, read_query
from gtp.json.settings import Settings
from gtp.json.values import FieldError, integers, parse_line, to_line

KATAGO_VERSION = "1.17.2"
"""Version of KataGo whose protocol this is; clients ask for it to know which fields they may send"""
ACTIONS = "'action' field must be 'query_version' or 'query_models' or 'clear_cache' or 'terminate' or 'terminate_all'"
TURNS = "If provided, must be an array of integers indicating turns to terminate"
NO_TERMINATE_ID = 'Requests for a terminate action must have a string "terminateId" field'


class JsonEngine:
    """Answers requests of KataGo's analysis protocol. Threads: one thread calls the public methods."""

    def __init__(self, analyses: Analyses, defaults: Settings, write: Callable[[str], None],
                 models: list[dict[str, Any]], is_full: Callable[[], bool] = lambda: False) -> None:  # fmt: skip
        """Make an engine that has no requests yet.

        Args:
            write: sends a line and returns at once; called by one thread at a time.
            models: the networks, in the format of ``query_models``.
            is_full: whether the client reads so slowly that reports during searches, which later ones replace, are not
                sent.
        """
        self._analyses, self._defaults, self._write, self._models = analyses, defaults, write, models
        self._is_full = is_full
        self._open: dict[tuple[str, int], list[Job]] = {}
        """unanswered jobs, by id and turn"""
        self._lock = threading.Lock()
        self._is_mute = False

    def take(self, line: str) -> None:
        """Act on one line of input; an error of any kind is sent as an answer, since other queries are under way."""
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
            reason = whole_line(error)
            self._send(about | {"error": f"internal error: {type(error).__name__}: {reason}"})

    def finish(self) -> None:
        """Answer all open queries."""
        self._analyses.finish()

    def close(self) -> None:
        """Stop without answers to open queries."""
        with self._lock:
            self._is_mute = True
        self._analyses.close()

    def _answer(self, request: Any) -> None:
        """Act on a request.

        Raises:
            FieldError: one of its fields is wrong.
        """
        if not isinstance(request, dict):
            shown = json.dumps(request, ensure_ascii=False, separators=(",", ":"))
            self._send({"error": f"Request line was valid json but was not an object, ignoring: {shown}"})
        elif not isinstance(request.get("id"), str):
            self._send({"error": 'Request must have a string "id" field'})
        elif not isinstance(action := request.get("action"), str):
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
        """Stop queries, all or those that the request names; each is answered with its search so far."""
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
        """Make the job that analyses one turn of a query and sends its answers."""
        settings = query.settings
        task = Task(
            turn.position,
            settings.search,
            min(settings.visits, settings.playouts or settings.visits),
            settings.seconds,
            query.moves,
            query.wanted.any_ownership,
            query.every_s or math.inf,
            query.first_s or math.inf,
            settings.human,
        )

        def answer(found: Analysis | None, is_running: bool) -> None:
            if is_running and self._is_full():
                return
            about = {"id": query.id, "isDuringSearch": is_running, "turnNumber": turn.number}
            if found is None:
                self._send(about | {"noResults": True})
            else:
                position = turn.position
                size, to_move = int(position.board.meta[META_SIZE]), int(position.meta[META_TO_MOVE])
                self._send(about | Answer(found, size, to_move, query.wanted).object())
            if not is_running:
                self._forget(query.id, turn.number, job)

        def fail(reason: str) -> None:
            print(f"keima: {reason}", file=sys.stderr, flush=True)
            self._send({"error": reason, "id": query.id, "turnNumber": turn.number})
            self._forget(query.id, turn.number, job)

        job = Job(task, turn.priority, answer, fail)
        return job

    def _forget(self, name: str, turn: int, job: Job) -> None:
        """Remove a job after its last answer."""
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
        """Send an object as a line."""
        line = to_line(value)
        with self._lock:
            if not self._is_mute:
                self._write(line + "\n")
