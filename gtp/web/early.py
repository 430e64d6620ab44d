"""The state that the page gets while the board's kernels are being loaded; it needs neither numpy nor Numba."""

from typing import Any

from gtp.web.settings import GameSettings


def early_state(settings: GameSettings, text: str) -> dict[str, Any]:
    """An empty board in the form of :func:`gtp.web.shown.state_of`, revision 0.

    Args:
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
        "sizes": [2, 25],
        "placing": 0,
        "said": "",
        "warning": None,
        "review": {"state": "none", "text": "", "url": None},
    }
