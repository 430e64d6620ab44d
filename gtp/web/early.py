"""The state that the page gets while the board's kernels are being loaded; it needs neither numpy nor Numba."""

from pathlib import Path
from typing import Any

from engine.go.points import MAX_SIZE, MIN_SIZE
from engine.go.rules import RULE_SETS
from gtp.web.settings import GameSettings

RESULT = b"RE["
"""Beginning of the result's property in a record, which has none until the game is over"""


def early_state(settings: GameSettings, folder: Path, given: dict[str, Any], text: str) -> dict[str, Any]:
    """An empty board in the form of :func:`gtp.web.shown.state_of`, revision 0.

    It has ``resumes`` besides: whether the latest game is likely to be continued.

    Args:
        folder: of the user's games.
        given: settings that the command line names.
        text: what is being loaded.
    """
    engines = settings.engines
    return {
        "rev": 0,
        "id": "",
        "size": settings.size,
        "rules": settings.rules,
        "komi": settings.komi,
        "handicap": 0,
        "players": {
            name: {"name": "Keima" if is_engine else "You", "engine": is_engine}
            for name, is_engine in zip(("black", "white"), engines, strict=True)
        },
        "phase": "play",
        "result": None,
        "board": "." * settings.size**2,
        "toMove": "black",
        "last": None,
        "ko": None,
        "captures": {"black": 0, "white": 0},
        "node": 0,
        "number": 0,
        "path": [],
        "branches": [],
        "atEnd": True,
        "engine": {"state": "loading", "text": text},
        "network": None,
        "clock": None,
        "dead": [],
        "owners": None,
        "count": None,
        "graph": [],
        "help": {"hint": False, "analysis": False, "thinking": False},
        "level": settings.level,
        "levels": [settings.level],
        "ruleSets": list(RULE_SETS),
        "given": given,
        "resumes": _has_open_game(folder),
        "sizes": [MIN_SIZE, MAX_SIZE],
        "placing": 0,
        "undoes": False,
        "said": "",
        "warning": None,
        "review": {"state": "none", "text": "", "url": None},
    }


def _has_open_game(folder: Path) -> bool:
    """Whether the game that was changed last has no result."""
    try:
        files = [path for path in folder.glob("*.sgf") if path.stat().st_size]
        return bool(files) and RESULT not in max(files, key=lambda path: path.stat().st_mtime).read_bytes()
    except OSError:
        return False
