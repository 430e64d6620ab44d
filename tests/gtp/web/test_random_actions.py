"""Random actions of a page, in any order: every answer is a state or a refusal, and the record stays sound."""

import json
import random

import pytest

from engine.go.sgf import read_sgf
from tests.gtp.web.served import Tab

ACTIONS = {
    "new": 2, "play": 40, "pass": 8, "undo": 5, "resign": 1, "goto": 5, "hint": 1, "analysis": 1, "thinking": 1,
    "dead": 5, "accept": 3, "continue": 3, "players": 2, "level": 1, "rollout": 1, "layers": 1, "open": 1,
}  # fmt: skip
NUMBER = 150


def body_of(action, state, drawn):
    """A body for an action, sound or not."""
    size = state["size"]
    points = [at for at, color in enumerate(state["board"]) if color == "."] or [0]
    return {
        "new": {
            "size": drawn.choice([2, 3, 5, 9, 9]), "rules": drawn.choice(["chinese", "japanese", "tromp-taylor"]),
            "color": drawn.choice(["black", "white", "random", "both", "both", "none"]),
            "handicap": drawn.choice([0, 0, 2]), "handicapStones": drawn.choice(["fixed", "placed"]),
            "clock": drawn.choice([None, {"mainSeconds": 100, "incSeconds": 1}]),
        },
        "play": {"point": drawn.choice([*points, drawn.randrange(size * size)])},
        "pass": {"point": -1},
        "goto": {"node": drawn.choice(state["path"])[0] if state["path"] else 0},
        "hint": {"on": drawn.random() < 0.3},
        "analysis": {"on": drawn.random() < 0.3},
        "thinking": {"on": drawn.random() < 0.3},
        "dead": {"point": drawn.randrange(size * size)},
        "players": {"color": drawn.choice(["black", "white", "both"])},
        "level": {"level": "max"},
        "open": {"sgf": "(;SZ[9];B[ee](;W[cc];B[gg])(;W[gc]))"},
    }.get(action, {})  # fmt: skip


@pytest.mark.parametrize("seed", [1, 2])
def test_random_actions_do_no_harm(port, seed):
    tab, drawn = Tab(port).enter(), random.Random(seed)
    tab.post("new", size=9, color="black", rules="chinese", handicap=0)
    for _ in range(NUMBER):
        action = drawn.choices(list(ACTIONS), ACTIONS.values())[0]
        body = {"rev": tab.state["rev"], **body_of(action, tab.state, drawn)}
        path = f"/api/{'play' if action == 'pass' else action}"
        status, _, data = tab.request("POST", path, json.dumps(body).encode())
        answer = json.loads(data)
        assert status in (200, 400, 409) and ("error" in answer) == (status != 200), (action, status, answer)
        tab.state = answer["state"]
        assert len(tab.state["board"]) == tab.state["size"] ** 2 and "\n" not in answer.get("error", "")
    sgf = tab.request("GET", "/api/sgf")[2]
    read_sgf(sgf).to_game()
