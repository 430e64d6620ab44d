"""Analysis in the real process: what is written while a command runs, and what ends it."""

import json
import re
import time

import pytest

from tests.gtp.process import ANSWER_S, Engine, line_of

VERTEX = r"(?:[A-HJ][1-9]|pass)"
FLOAT = r"-?[0-9.]+(?:e-[0-9]+)?"
KATA = re.compile(
    rf"info move {VERTEX} visits \d+ edgeVisits \d+ utility {FLOAT} winrate {FLOAT} scoreMean {FLOAT} "
    rf"(?:scoreStdev {FLOAT} )?scoreLead {FLOAT} scoreSelfplay {FLOAT} prior {FLOAT} lcb {FLOAT} utilityLcb {FLOAT} "
    rf"weight \d+ order \d+ pv {VERTEX}(?: {VERTEX})*"
)
LZ = re.compile(rf"info move {VERTEX} visits \d+ winrate \d+ prior \d+ lcb \d+ order \d+ pv {VERTEX}(?: {VERTEX})*")
ROOT = re.compile(
    rf"rootInfo visits \d+ utility {FLOAT} winrate {FLOAT} scoreMean {FLOAT} (?:scoreStdev {FLOAT} )?scoreLead {FLOAT} "
    rf"scoreSelfplay {FLOAT} weight \d+ rawStWrError -1 rawStScoreError -1 rawVarTimeLeft -1"
)


@pytest.fixture(scope="module")
def process():
    with Engine("--visits", "50", "--threads", "1", "--search-summary") as engine:
        yield engine


@pytest.fixture
def engine(process):
    for command in ("boardsize 9", "clear_board", "play b E5", "play w C4"):
        assert process.ask(command) == "="
    return process


def analyzed(engine, command, lines=3, ending="name", grows=False):
    """The first updates of an analysis, which is then ended; all before the empty line belongs to it.

    Where it ``grows``, more are read until there are more visits than at first.
    """
    engine.send(command + "\n")
    assert line_of(engine) == "="
    updates = []
    while len(updates) < lines or (grows and visits_of(updates[-1]) == visits_of(updates[0])):
        updates.append(line_of(engine))
    engine.send(ending + "\n")
    while rest := line_of(engine):
        updates.append(rest)
    if ending == "name":
        assert engine.reply() == "= Keima"
    return updates


def segments(line):
    """What an update says of each move, and what follows behind the moves."""
    moves, _, rest = line.partition(" rootInfo ")
    return re.findall(r"info .*?(?= info |$)", moves), rest


def moves_of(line):
    return [segment.split()[2] for segment in segments(line)[0]]


def visits_of(line):
    return sum(int(segment.split()[4]) for segment in segments(line)[0])


@pytest.mark.parametrize(("command", "layout"), [("kata-analyze", KATA), ("lz-analyze", LZ)])
def test_updates_are_one_line_each_in_the_layout_that_clients_know(engine, command, layout):
    updates = analyzed(engine, f"{command} b 5", grows=True)
    for update in updates:
        found, _ = segments(update)
        assert " ".join(found) == update
        assert all(layout.fullmatch(segment) for segment in found), update
        assert [int(re.search(r"order (\d+)", segment)[1]) for segment in found] == list(range(len(found)))
        assert len(set(moves_of(update))) == len(found)
    assert visits_of(updates[-1]) > visits_of(updates[0])


@pytest.mark.parametrize("ending", ["name", "", "stop", "# interrupt", "#", "nonsense", "undo"])
def test_any_line_ends_an_analysis(engine, ending):
    assert analyzed(engine, "kata-analyze 5", 1, ending)
    if ending in ("stop", "undo"):
        assert engine.reply() == "="
    elif ending == "nonsense":
        assert engine.reply() == "? unknown command"
    assert engine.ask("version").startswith("= ")


def test_an_analysis_that_was_ended_before_it_began_is_still_answered(engine):
    engine.send("1 kata-analyze b 5\n2 lz-analyze 5\n3 name\n")
    replies = [engine.reply() for _ in range(3)]
    assert [reply.split("\n")[0] for reply in replies] == ["=1", "=2", "=3 Keima"]


def test_the_first_update_does_not_wait_for_the_interval(engine):
    """Here ten minutes, after which the test is given up."""
    (first,) = analyzed(engine, "kata-analyze 60000", 1)
    assert visits_of(first) > 0


def test_the_tree_is_kept_while_the_position_stays_and_when_moves_follow(engine):
    before = visits_of(analyzed(engine, "lz-analyze b 10")[-1])
    again = analyzed(engine, "kata-analyze b 10", 1)[0]
    assert visits_of(again) >= before
    _, _, best, _, visits, *_ = again.split()
    assert engine.ask(f"play b {best}") == "="
    assert visits_of(analyzed(engine, "kata-analyze w 1", 1)[0]) >= int(visits) - 1


def test_either_colour_is_analyzed_from_its_own_view(engine):
    for move in ("b D5", "b E6", "b F4", "b G6", "b C6"):
        assert engine.ask(f"play {move}") == "="
    rates = {}
    for color in "bw":
        found = segments(analyzed(engine, f"kata-analyze {color} 10 rootInfo true")[-1])
        rates[color] = float(re.search(r"winrate (\S+)", found[1])[1])
    assert rates["b"] > 0.8 and rates["w"] < 0.4


def test_what_else_may_be_asked_for(engine):
    command = (
        "kata-analyze interval 5 minmoves 3 maxmoves 3 pvVisits true rootInfo true ownership true pvEdgeVisits false"
    )
    for update in analyzed(engine, command):
        found, rest = segments(update)
        assert len(found) == 3
        for segment in found:
            line, counts = re.search(r" pv (.*) pvVisits (.*)", segment).groups()
            assert len(line.split()) == len(counts.split())
            assert counts.split()[0] == re.search(r"visits (\d+)", segment)[1]
        root, _, owners = rest.partition(" ownership ")
        assert ROOT.fullmatch("rootInfo " + root)
        owners = [float(text) for text in owners.split()]
        assert len(owners) == 81 and owners[40] > 0 > owners[47] and max(map(abs, owners)) <= 1
    # White's view of the same.
    _, rest = segments(analyzed(engine, "kata-analyze w 5 rootInfo true ownership true", 1)[0])
    owners = [float(text) for text in rest.partition(" ownership ")[2].split()]
    assert owners[40] < 0 < owners[47]


def test_unlikely_moves_are_shown_where_so_many_are_asked_for(engine):
    update = analyzed(engine, "lz-analyze b 5 minmoves 60", 1)[0]
    assert len(moves_of(update)) >= 60


def test_moves_are_left_out_and_left_alone(engine):
    assert set(moves_of(analyzed(engine, "kata-analyze b 5 allow B C3,E3 1")[-1])) == {"C3", "E3"}
    favourites = moves_of(analyzed(engine, "kata-analyze b 5", 5)[-1])[:2]
    command = f"lz-analyze b 5 avoid b {favourites[0]} 1 avoid b {favourites[1]} 20 avoid w pass,{favourites[0]} 20"
    updates = analyzed(engine, command, 5)
    for update in updates:
        assert not set(favourites) & set(moves_of(update))
        for segment in segments(update)[0]:
            line = segment.split(" pv ")[1].split()
            assert favourites[1] not in line[0:20:2]
            assert favourites[0] not in line[1:20:2]
    # For each colour its own.
    for update in analyzed(engine, "kata-analyze b 5 allow B C3,E3 1 allow W D3 2", 3):
        assert set(moves_of(update)) <= {"C3", "E3"}
        for segment in segments(update)[0]:
            assert segment.split(" pv ")[1].split()[1:2] in ([], ["D3"], ["pass"])
    update = analyzed(engine, f"kata-analyze b 5 avoid B {favourites[0]} 1 allow W D3 2 avoid b {favourites[1]} 1", 1)[
        0
    ]
    assert not set(favourites) & set(moves_of(update))
    # Nothing is left to choose: nothing is said, and the next line is answered.
    assert analyzed(engine, "kata-analyze b 5 allow b E5 1", 0) == []


@pytest.mark.parametrize(
    "form",
    ["kata-genmove_analyze", "lz-genmove_analyze", "kata-search_analyze", "kata-search_analyze_cancellable"],
)
def test_a_move_is_chosen_and_what_was_found_is_said_before_it(engine, form):
    layout = LZ if form.startswith("lz") else KATA
    reply = engine.ask(f"7 {form} b 500").split("\n")
    assert reply[0] == "=7" and len(reply) >= 3
    assert all(layout.fullmatch(segment) for line in reply[1:-1] for segment in segments(line)[0])
    move = re.fullmatch(f"play ({VERTEX})", reply[-1])[1]
    assert move == moves_of(reply[-2])[0]
    assert engine.ask("undo") == "="
    played = "C4" if "search" in form else move
    assert engine.ask(f"play b {played}") == "="


def test_a_search_without_playing_is_a_genmove_that_may_resign(engine):
    shown = engine.ask("showboard")
    for command in ("kata-search b", "kata-search_cancellable b"):
        assert re.fullmatch(f"= {VERTEX}", engine.ask(command))
    assert engine.ask("showboard") == shown
    for number in range(18):
        assert engine.ask(f"play {'bw'[number % 2]} {'ABCDEFGHJ'[number // 2]}{1 + number % 2}") == "="
    changed = {"resign-below": 1.0, "resign-count": 1}
    before = {name: engine.ask(f"kata-get-param {name}")[2:] for name in changed}
    assert engine.ask(f"kata-set-params {json.dumps(changed)}") == "="
    for command in ("kata-search b", "kata-search_analyze b 500"):
        assert engine.ask(command).split()[-1] == "resign"
    assert re.fullmatch(f"= {VERTEX}", engine.ask("reg_genmove b")), "a question about a position"
    assert engine.ask("kata-set-param allowResignation false") == "="
    assert re.fullmatch(f"= {VERTEX}", engine.ask("kata-search b"))
    assert engine.ask(f"kata-set-params {json.dumps(before)}") == "="


@pytest.mark.parametrize("line", ["name", "", "# interrupt"])
def test_another_line_cancels_a_search_that_may_be_cancelled(engine, line):
    assert engine.ask("kata-set-param visits 100000000") == "="
    try:
        engine.send("7 kata-search_analyze_cancellable b 1\n")
        assert line_of(engine) == "=7"
        assert KATA.match(line_of(engine))
        engine.send(line + "\n")
        said = []
        while text := line_of(engine):
            said.append(text)
        assert said[-1] == "play cancelled"
        if line == "name":
            assert engine.reply() == "= Keima"
        engine.send(f"kata-search_cancellable b\n{line}\n")
        assert engine.reply() == "= cancelled"
        if line == "name":
            assert engine.reply() == "= Keima"
    finally:
        assert engine.ask("kata-set-param visits 50") == "="


def test_a_move_is_chosen_among_those_left(engine):
    assert engine.ask("lz-genmove_analyze b 500 allow b A1,J9 1").split("\n")[-1] in ("play A1", "play J9")


def test_a_game_at_its_end_is_analyzed_and_chosen_from(engine):
    for move in ("b pass", "w pass"):
        assert engine.ask(f"play {move}") == "="
    assert moves_of(analyzed(engine, "kata-analyze b 5")[-1])
    assert re.fullmatch(f"play {VERTEX}", engine.ask("kata-genmove_analyze b 5").split("\n")[-1])


def test_owners_follow_the_search(shared_network_engine):
    """Of the position and of each move, with how far they vary."""
    engine = shared_network_engine
    for command in ("boardsize 9", "clear_board", "play b E5", "play w C4"):
        assert engine.ask(command) == "="
    command = "kata-analyze b 5 ownership true ownershipStdev true movesOwnership true maxmoves 1"
    first, *_, last = analyzed(engine, command, grows=True)
    for update in (first, last):
        moves = update.partition(" movesOwnership ")[2].split(" ownership ")[0].split()
        owners, _, spread = update.partition(" ownership ")[2].partition(" ownershipStdev ")
        assert [len(moves), len(owners.split()), len(spread.split())] == [81] * 3
        assert all(-1.0 <= float(word) <= 1.0 for word in (*moves, *owners.split(), *spread.split()))
    assert first.partition(" ownership ")[2] != last.partition(" ownership ")[2]
    assert max(map(float, last.partition(" ownershipStdev ")[2].split())) > 0.0


def test_the_deviation_of_the_score_is_told_of_moves_and_the_position(shared_network_engine):
    """Once the network has said of the position who owns the points."""
    engine = shared_network_engine
    assert engine.ask("clear_board") == "="
    engine.send("kata-analyze b 5 rootInfo true\n")
    assert line_of(engine) == "="
    while "scoreStdev" not in (update := line_of(engine)):
        assert update.startswith("info ")
    moves, root = segments(update)
    assert all(re.search(rf" scoreMean {FLOAT} scoreStdev {FLOAT} scoreLead ", text) for text in (*moves, root))
    engine.send("name\n")
    while line_of(engine):
        pass
    assert engine.reply() == "= Keima"


REFUSED = {
    "kata-analyze b 5 x": "'x' is unknown, expected one of interval, minmoves, maxmoves, avoid, allow",
    "kata-analyze green": "'green' is unknown",
    "lz-analyze ownership true": "'ownership' is unknown",
    "kata-analyze interval": "expected interval CENTISECONDS",
    "kata-analyze -1": "interval is -1, expected 0 or more",
    "kata-analyze interval soon": "'soon' is not a number",
    "kata-analyze ownership perhaps": "ownership is 'perhaps', expected true or false",
    "kata-analyze minmoves -1": "minmoves is -1, expected 0 or more",
    "kata-analyze avoid b D4": "expected avoid COLOR VERTICES DEPTH",
    "kata-genmove_analyze w 10 allow w , 3": "allow without a vertex",
    "kata-analyze avoid b D4 0": "a depth of 0 moves, expected 1 or more",
    "lz-analyze avoid b Z4 1": "'Z4' is not a vertex of a 9x9 board",
    "lz-analyze allow b D4 1 allow w D4 1 allow b E4 1": "expected one allow alone",
    "kata-analyze allow w D4 1 avoid w D4 1": "expected one allow alone",
    "kata-analyze avoid b A1 1 allow b D4 1": "expected one allow alone",
    "cgos-genmove_analyze b ownership true": "'ownership' is unknown",
    "kata-search": "expected kata-search COLOR",
    "kata-search_cancellable b 5": "expected kata-search_cancellable COLOR",
    "kata-genmove_analyze b 5 5": "'5' is unknown",
}


@pytest.mark.parametrize(("command", "message"), REFUSED.items())
def test_arguments_that_make_no_sense_are_refused_in_one_line(engine, command, message):
    reply = engine.ask(command)
    assert reply.startswith("? ") and message in reply and "\n" not in reply


def test_nothing_is_listed_that_clients_misread(engine):
    names = engine.ask("list_commands")[2:].split("\n")
    assert "analyze" not in names and "genmove_analyze" not in names
    assert {"kata-analyze", "lz-analyze", "kata-genmove_analyze", "lz-genmove_analyze"} <= set(names)


def test_the_summary_is_what_gtp2ogs_reads(engine):
    before = len(engine.errors)
    move = engine.ask("genmove b")[2:]
    assert engine.ask("lz-genmove_analyze w").split("\n")[-1].startswith("play ")
    while sum(b" visits, " in line for line in engine.errors[before:]) < 2:
        time.sleep(0.01)
    lines = [line.decode().rstrip() for line in engine.errors[before:] if line.strip()]
    number = r" *\d+\.\d\d%"
    for line in lines:
        assert re.fullmatch(
            rf" *{VERTEX} -> +\d+ \(V:{number}\) \(LCB:{number}\) \(N:{number}\) PV: {VERTEX}(?: {VERTEX})*"
            r"|\d+ visits, \d+ nodes, \d+ playouts, \d+ n/s",
            line,
        ), line
    assert lines[0].split()[0] == move


def test_updates_come_while_a_move_is_chosen_and_beside_pondering():
    with Engine("--seconds", "600", "--ponder", "--threads", "1") as engine:
        assert analyzed(engine, "kata-analyze w 5")
        engine.send("lz-genmove_analyze b 5\n")
        assert [line_of(engine)[:4] for _ in range(4)] == ["=", "info", "info", "info"]
        # What is sent meanwhile waits, but for an interruption.
        engine.send("name\n")
        assert line_of(engine).startswith("info ")
        engine.send("# interrupt\n")
        assert re.fullmatch(f"play {VERTEX}", engine.reply().split("\n")[-1])
        assert engine.reply() == "= Keima"
        assert analyzed(engine, "lz-analyze w 5")
        # The end of input ends an analysis, too.
        engine.send("5 lz-analyze 5\n")
        assert line_of(engine) == "=5" and line_of(engine).startswith("info ")
        status, rest, errors = engine.end()
    assert status == 0 and re.fullmatch(r"Keima \S+: GTP ready\n", errors)
    assert rest.endswith("\n") and not rest.rstrip("\n").count("\n\n") and rest.count("=") == 0


def test_the_weights_decide_what_is_known_of_points_and_owners():
    with Engine("--weights", "default", "--policy-only") as engine:
        reply = engine.ask("kata-genmove_analyze b 5 ownership true maxmoves 4").split("\n")
        assert len(moves_of(reply[-2])) == 4 and "visits 0 " in reply[-2]
        assert len(reply[-2].split(" ownership ")[1].split()) == 81
        found = analyzed(engine, "kata-analyze w 5 rootInfo true ownership true")
        assert visits_of(found[-1]) > 0 and ROOT.search(found[-1])
        # The last client to go: when the client closes its end of the pipe, the analysis ends and so does the process.
        engine.send("kata-analyze 5\n")
        assert line_of(engine) == "="
        engine.process.stdout.close()
        assert engine.process.wait(ANSWER_S) == 1
        # Before it, on a new machine, the news that kernels are being compiled.
        assert b"".join(engine.errors).decode().endswith("keima: the client no longer reads the replies\n")
