"""Help when asked: the live search, how the engine thinks, rollouts, layers, and the review in the background."""

import json
import queue
import threading
from dataclasses import replace

import pytest
from numba.core import event

from engine.insight.raw_outputs import OWNER_LETTERS
from engine.play.player import Player
from gtp.web.compiling import KIND, Compiling
from tests.gtp.web.served import Tab, ready, serving
from tests.playing import FEW, SEARCH


@pytest.fixture(scope="module")
def network_port(tmp_path_factory, tiny_network):
    """Port of a server that plays with a tiny network."""
    with serving(tmp_path_factory.mktemp("data"), tiny_network, play=replace(FEW, visits=16)) as (_, port):
        Tab(port).enter().wait(lambda state: state["network"] == "tiny")
        yield port


@pytest.fixture
def thinker(network_port):
    """A tab on a game of both colours, with nothing searched."""
    tab = Tab(network_port).enter()
    for name in ("hint", "analysis", "thinking"):
        tab.post(name, on=False)
    tab.post("new", size=9, color="both", rules="chinese", komi=7.5)
    return tab


def searches(tab):
    """The events of the live search."""
    return (data for kind, data in tab.events() if kind == "search")


def test_nothing_is_searched_unless_asked(thinker):
    stream = thinker.events()
    next(stream)
    for vertex in ("C3", "G7", "E5"):
        thinker.play(vertex)
        assert next(stream)[0] == "state"
    assert thinker.state["help"] == {"hint": False, "analysis": False, "thinking": False}


def test_a_hint_tells_moves(thinker):
    thinker.post("hint", on=True)
    found = next(event for event in searches(thinker) if event["visits"] >= 8)
    assert found["node"] == thinker.state["node"] and 0 <= found["winrateBlack"] <= 1
    assert {"i", "visits", "prior", "winrateBlack", "leadBlack", "lost", "pv"} == set(found["moves"][0])
    assert found["moves"][0]["lost"] == 0 and found["moves"][0]["pv"][0] == found["moves"][0]["i"]
    assert len(found["owners"]) == 81 and set(found["owners"]) <= set(OWNER_LETTERS)


def test_the_search_follows_the_shown_position(thinker):
    thinker.play("C3", "G7")
    thinker.post("analysis", on=True)
    stream = searches(thinker)
    assert next(stream)["node"] == thinker.state["node"]
    back = thinker.state["path"][0][0]
    thinker.post("goto", node=back)
    assert next(event for event in stream if event["node"] == back)
    assert thinker.wait(lambda state: len(state["graph"]) >= 1)["graph"][0][0] in (1, 2)


def test_the_search_ends_with_the_last_tab(thinker, network_port):
    thinker.post("analysis", on=True)
    next(searches(thinker))
    # The stream above is closed: the engine is free for another work at once, and a new tab finds the search again.
    assert next(searches(Tab(network_port).enter()))["visits"] > 0


def test_how_it_thinks(thinker):
    thinker.post("thinking", on=True, parts=["values", "policy", "visits", "line", "tree"])
    thoughts = next(event["thinking"] for event in searches(thinker) if "thinking" in event)
    assert {"values", "policy", "visits", "line", "tree"} <= set(thoughts)
    assert thinker.refused("thinking", on=True, parts=["mind"]).startswith("unknown part 'mind'")


def test_help_does_not_stop_the_game(thinker):
    thinker.post("new", color="black")
    thinker.post("analysis", on=True)
    stream = searches(thinker)
    next(stream)
    thinker.play("E5")
    assert thinker.state["number"] == 2
    assert next(event for event in stream if event["node"] == thinker.state["node"])


def test_compilation_in_the_background_is_told(tmp_path):
    """Help may wait for it."""
    says = []

    def load(say):
        says.append(say)
        return Player(replace(SEARCH, uniform_rollouts=True), FEW, None, size=9, any_size=True)

    with serving(tmp_path, load=load) as (_, port):
        tab = Tab(port).enter()
        tab.wait(ready)
        says[0]("compiling kernels 3 of 13, once")
        state = tab.wait(lambda state: "3 of 13" in state["engine"]["text"])
        assert state["engine"] == {"state": "ready", "text": "compiling kernels 3 of 13, once"}
        says[0]("")
        tab.wait(lambda state: "3 of 13" not in state["engine"]["text"])


def test_a_rollout(thinker):
    thinker.play("E5")
    found = thinker.post("rollout")
    assert len(found["rollout"]["moves"]) > 20 and found["rollout"]["result"][:2] in ("B+", "W+")
    assert found["state"]["number"] == 1


def test_layers(thinker):
    found = thinker.post("layers")
    assert found["size"] == 9 and found["layer"] == found["layers"][0]
    assert thinker.post("layers", layer=found["layers"][1])["layer"] == found["layers"][1]
    assert "no layer 'x'" in thinker.refused("layers", layer="x")


def test_no_layers_without_a_network(tab):
    assert tab.post("layers")["missing"] == "no network plays here"


def test_a_review_in_the_background(thinker):
    thinker.play("E5", "C3", "G7")
    thinker.post("review")
    assert thinker.state["review"]["state"] == "running"
    state = thinker.wait(lambda state: state["review"]["state"] != "running")
    assert state["review"]["state"] == "done" and state["review"]["url"] == f"/review/{state['id']}"
    status, headers, page = thinker.request("GET", state["review"]["url"])
    assert status == 200 and b"<svg" in page and b'data-analyse="/api/position"' in page
    scripts = headers["content-security-policy"].partition("script-src")[2].partition(";")[0]
    assert "'sha256-" in scripts and "unsafe" not in scripts


def test_a_game_without_moves_is_not_reviewed(tab):
    assert tab.refused("review").startswith("the game cannot be reviewed")


def test_an_engine_that_fails_says_so(tmp_path):
    def load(say):
        say("loading the network")
        raise ValueError("x.safetensors: not a network")

    with serving(tmp_path, load=load) as (_, port):
        tab = Tab(port).enter()
        state = tab.wait(lambda state: state["engine"]["state"] == "failed")
        assert state["engine"]["text"] == "x.safetensors: not a network"
        tab.post("new", color="black", size=9)
        tab.post("play", point=0)
        state = tab.wait(lambda state: "cannot move" in (state["warning"] or ""))
        assert state["number"] == 1
        tab.post("new", color="both")
        tab.play("C3", "D4")


def test_the_board_is_there_before_the_engine(tmp_path):
    """Moves are played while the engine loads; it answers once it is ready."""
    may_load = threading.Event()

    def load(say):
        say("compiling kernels 1 of 2")
        may_load.wait()
        return Player(replace(SEARCH, uniform_rollouts=True), FEW, None, size=9, any_size=True)

    with serving(tmp_path, load=load) as (_, port):
        tab = Tab(port).enter()
        state = tab.wait(lambda state: state["engine"]["text"] == "compiling kernels 1 of 2" and state["rev"] > 0)
        assert state["engine"]["state"] == "loading"
        tab.post("new", color="black", size=9, clock={"mainSeconds": 600})
        tab.post("play", point=40)
        assert tab.state["number"] == 1 and not any(one["running"] for one in tab.state["clock"].values())
        may_load.set()
        state = tab.wait(lambda state: state["number"] == 2)
        assert state["engine"]["state"] in ("ready", "thinking") and state["clock"]["black"]["running"]


def test_a_position_is_analysed_for_the_page_of_a_review(thinker):
    start = "0" * 40 + "1" + "0" * 40
    body = {"size": 9, "rules": "japanese", "komi": 6.5, "start": start, "moves": [[2, 20], [1, -1], [2, 60]]}
    status, _, data = thinker.request("POST", "/api/position", json.dumps(body).encode())
    found = json.loads(data)
    assert status == 200 and found["visits"] >= 50 and len(found["owners"]) == 81
    assert {"i", "pv", "visits", "winrateBlack", "leadBlack", "prior"} <= set(found["moves"][0])
    # The live search of the table goes on.
    thinker.post("analysis", on=True)
    stream = searches(thinker)
    next(stream)
    assert thinker.request("POST", "/api/position", json.dumps(body).encode())[0] == 200
    assert next(event for event in stream if event["node"] == 0)


@pytest.mark.parametrize(
    "body, said",
    [
        ({"moves": []}, "moves is [], expected 1 to 2000 pairs"),
        ({"moves": [[3, 1]]}, "moves is [[3, 1]], expected"),
        ({"moves": [[1, 40]]}, "E5 is occupied"),
        ({"moves": [[1, 99]]}, "point is 99, expected -1 to 80"),
        ({"start": "000"}, "start is '000', expected 81 digits"),
        ({"size": 40}, "size is 40, expected 2 to 25"),
        ({"rules": "mine"}, "no rules are called 'mine'"),
    ],
)
def test_a_wrong_position_is_refused(thinker, body, said):
    sound = {"size": 9, "rules": "chinese", "komi": 7.5, "start": "0" * 40 + "1" + "0" * 40, "moves": [[2, 1]]}
    status, _, data = thinker.request("POST", "/api/position", json.dumps(sound | body).encode())
    assert status == 400 and said in json.loads(data)["error"]


def test_a_compilation_begun_before_it_is_told_is_one_the_less(monkeypatch):
    """Numba tells of its end alone: then the end of the next one must count."""
    monkeypatch.setattr("gtp.web.compiling.LATE_S", 0.0)
    told = queue.SimpleQueue()
    compiling = Compiling(told.put)
    try:
        compiling.on_end(None)
        with event.trigger_event(KIND, {}):
            assert told.get(timeout=10) is True
        assert told.get(timeout=10) is False
    finally:
        compiling.close()


def test_compilation_is_told(tmp_path):
    """The first search with help compiles kernels, once for a machine; the page says so."""
    may_compile = threading.Event()

    def load(say):
        player = Player(replace(SEARCH, uniform_rollouts=True), FEW, None, size=9, any_size=True)
        threading.Thread(target=compile_later).start()
        return player

    def compile_later():
        may_compile.wait()
        with event.trigger_event(KIND, {}):
            may_end.wait()

    may_end = threading.Event()
    with serving(tmp_path, load=load) as (_, port):
        tab = Tab(port).enter()
        tab.wait(lambda state: state["engine"] == {"state": "ready", "text": ""})
        tab.post("hint", on=True)
        may_compile.set()
        tab.wait(lambda state: state["engine"]["text"] == "compiling kernels, once for this machine")
        tab.post("hint", on=False)
        assert tab.state["engine"] == {"state": "ready", "text": ""}, "nothing waits for it"
        tab.post("hint", on=True)
        tab.wait(lambda state: state["engine"]["text"] == "compiling kernels, once for this machine")
        may_end.set()
        tab.wait(lambda state: state["engine"] == {"state": "ready", "text": ""})


def test_an_action_may_stop_the_analysis_of_a_position(tmp_path):
    """It waits for the engine's move, which the player takes back: both end."""
    with serving(tmp_path, play=replace(FEW, visits=0, seconds=3600.0, early_stop=False)) as (app, port):
        tab = Tab(port).enter()
        tab.wait(ready)
        tab.post("new", size=9, color="black")
        tab.post("play", point=40)
        tab.wait(lambda state: state["engine"]["state"] == "thinking")
        body = {"size": 9, "rules": "chinese", "komi": 7.5, "moves": [[1, 40]]}
        found, waits, submit = [], threading.Event(), app._engine.submit

        def noted(*arguments):
            future = submit(*arguments)
            waits.set()
            return future

        app._engine.submit = noted
        asking = threading.Thread(
            target=lambda: found.append(tab.request("POST", "/api/position", json.dumps(body).encode()))
        )
        asking.start()
        waits.wait()
        tab.post("undo")
        asking.join()
        assert found[0][0] == 409 and b"another action" in found[0][2]
