"""The test engine of tests/data without a process: a fake client for ``play_game``."""

from bench.match.gtp_client import EngineDied, EngineRefused, EngineTimeout
from tests.data.gtp_engine import HABIT_MOVE, Engine


class InProcess:
    """A client with an engine in this process and answer times from a table."""

    def __init__(self, habit: str = "", seed: int = 0, passes_after: int = 1000, answer_s: float = 0.01) -> None:
        self.engine = Engine("" if habit == "hang" else habit, seed, passes_after)
        self.hangs = habit == "hang"
        self.answer_s = answer_s
        self.last_answer_s = 0.0
        self.stray_lines = 0
        self.heard: list[str] = []
        self.limits_s: list[float] = []

    def ask(self, command: str, limit_s: float) -> str:
        self.heard.append(command)
        self.limits_s.append(limit_s)
        self.last_answer_s = self.answer_s
        if command == "kata-list_time_settings":
            return "none absolute byoyomi canadian fischer"
        if command.startswith(("time_settings", "kata-time_settings", "kgs-time_settings", "time_left")):
            return ""
        if self.hangs and command.startswith("genmove") and self.engine.own_moves + 1 == HABIT_MOVE:
            raise EngineTimeout(f"no answer to {command!r} in time")
        try:
            return self.engine.answer(command.split())
        except (ValueError, KeyError) as error:
            raise EngineRefused(str(error)) from error
        except SystemExit as error:
            raise EngineDied("engine ended") from error

    def lists(self, command: str, limit_s: float) -> bool:
        return command in ("time_settings", "time_left")

    def times_left(self) -> list[str]:
        return [command.split(maxsplit=2)[2] for command in self.heard if command.startswith("time_left")]
