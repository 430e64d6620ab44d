"""Analysis of games for reviews: sources, turns analysed, resuming after a kill."""

import threading

import pytest

from engine.config import SearchOptions
from engine.features.encoder import ENCODERS
from engine.go.geometry import BLACK, WHITE
from engine.go.position import META_TO_MOVE
from engine.go.rules import RULE_KOMI_X2, RULE_SETS
from engine.go.sgf import read_sgf
from engine.insight.analyses import Analyses
from engine.insight.review.games import game_to_review, is_review, sources
from engine.insight.review.review import AnalysisSettings, review_of
from engine.insight.review.running import AnalysedGame, GameAnalyser, subject_of
from engine.nets.fakes import HashNetwork
from engine.play.factory import Parts, new_server

OPTIONS = SearchOptions(threads=1, seed=7, memory=64)
MEANS = AnalysisSettings("hash", 12, 0.0)
SHORT = b"(;SZ[5]KM[0];B[bb];W[dd];B[bd];W[db];B[cc])"
OTHER = b"(;SZ[5]KM[0]PB[Ann];B[cc];W[bb])"


@pytest.fixture(scope="module")
def analyses():
    parts = Parts(OPTIONS, [HashNetwork("keima-1")], None, ENCODERS["keima-1"], None)
    made = Analyses(parts, new_server(parts, shared=True), 2)
    yield made
    made.close()


def work(folder, data, name="game"):
    game = game_to_review(read_sgf(data))
    return AnalysedGame(name, game, folder, subject_of(game, MEANS, "hash", OPTIONS))


def run(analyses, works):
    """Analyse games; returns their names in the order in which they ended, and the number of analysed positions."""
    ended, turns = [], []
    running = GameAnalyser(analyses, OPTIONS, MEANS, 2)
    assert running.run(iter(works), lambda: turns.append(1), ended.append)
    return [one.name for one in ended], len(turns)


def test_every_position_of_every_game_is_analysed(analyses, tmp_path):
    works = [work(tmp_path, SHORT, "a"), work(tmp_path, OTHER, "b")]
    assert run(analyses, works) == (["a", "b"], 9)
    turns = works[0].turns
    assert [turn.number for turn in turns] == list(range(6))
    assert [turn.to_move for turn in turns] == [BLACK, WHITE] * 3
    assert all(turn.visits == 12 and turn.moves for turn in turns)
    assert turns[0].policy.shape == (26,) and turns[0].ownership_black.shape == (25,)
    review = review_of("a", works[0].game, turns, MEANS)
    assert len(review.moves) == 5 and all(move.loss is not None for move in review.moves)


def test_a_game_that_goes_on_after_two_passes_is_analysed_to_its_end(analyses, tmp_path):
    one = work(tmp_path, b"(;SZ[5]KM[0]RU[Japanese];B[bb];W[];B[];W[dd];B[];W[])")
    assert run(analyses, [one]) == (["game"], 7)
    review = review_of("game", one.game, one.turns, MEANS)
    assert all(move.kind is not None for move in review.moves)


def test_a_review_goes_on_where_it_was_killed(analyses, tmp_path):
    first = work(tmp_path, SHORT)
    run(analyses, [first])
    first.close()
    lines = first.path.read_bytes().split(b"\n")
    # Three turns and a half.
    first.path.write_bytes(b"\n".join([*lines[:4], lines[4][:40]]))
    again = work(tmp_path, SHORT)
    assert len(again.missing) == 3
    assert run(analyses, [again]) == (["game"], 3)
    again.close()
    assert first.path.read_bytes().count(b"\n") == 7
    assert run(analyses, [work(tmp_path, SHORT)]) == (["game"], 0)


def test_two_copies_of_a_game_keep_their_analyses_in_one_file(analyses, tmp_path):
    first, second = work(tmp_path, SHORT, "a"), work(tmp_path, SHORT, "b")
    assert run(analyses, [first, second]) == (["a", "b"], 12)
    for one in (first, second):
        one.close()
    lines = first.path.read_bytes().splitlines()
    assert len(lines) == 13 and work(tmp_path, SHORT).missing == []


@pytest.mark.parametrize("broken", [b"", b"junk", b'{"format": 1}\nnot ours\n', b"\xff\xfe\n\n"])
def test_a_store_that_is_none_of_ours_is_begun_anew(tmp_path, broken):
    first = work(tmp_path, SHORT)
    first.close()
    before = first.path.read_bytes()
    first.path.write_bytes(broken)
    again = work(tmp_path, SHORT)
    again.close()
    assert len(again.missing) == 6 and again.path.read_bytes() == before


def test_other_rules_visits_or_networks_are_another_analysis(tmp_path):
    game = game_to_review(read_sgf(SHORT))
    japanese = game_to_review(read_sgf(SHORT), RULE_SETS["japanese"])
    subjects = [
        subject_of(game, MEANS, "hash", OPTIONS),
        subject_of(game, MEANS, "other", OPTIONS),
        subject_of(game, AnalysisSettings("hash", 13, 0.0), "hash", OPTIONS),
        subject_of(japanese, MEANS, "hash", OPTIONS),
        subject_of(game_to_review(read_sgf(SHORT.replace(b"KM[0]", b"KM[7]"))), MEANS, "hash", OPTIONS),
    ]
    assert len({AnalysedGame("a", game, tmp_path, subject).path for subject in subjects}) == 5


def test_a_run_that_is_stopped_ends(analyses, tmp_path):
    running = GameAnalyser(analyses, OPTIONS, MEANS, 2)
    ended = []
    assert running.run(iter([work(tmp_path, SHORT), work(tmp_path, OTHER)]), running.stop, ended.append) is False
    assert not ended


def test_a_network_that_fails_ends_the_run_in_one_line(tmp_path):
    class Failing:
        def submit(self, jobs):
            threading.Thread(target=jobs[0].on_failure, args=("out of order",)).start()

    running = GameAnalyser(Failing(), OPTIONS, MEANS, 2)
    with pytest.raises(RuntimeError, match=r"^out of order$"):
        running.run(iter([work(tmp_path, SHORT)]), lambda: None, lambda one: None)


def test_the_mover_is_to_move_even_out_of_turn():
    """Free handicap stones that a server wrote as moves."""
    game = game_to_review(read_sgf(b"(;SZ[9]HA[2];B[cc];B[gg];W[ee];B[ge])"))
    movers = [int(position.meta[META_TO_MOVE]) for position in game.positions]
    assert movers == [BLACK, BLACK, WHITE, BLACK, WHITE]
    assert (game.handicap, game.handicap_moves) == (2, 2)
    assert game_to_review(read_sgf(b"(;SZ[9];B[cc];W[];B[gg];W[ee];B[ge])")).handicap_moves == 3
    assert game_to_review(read_sgf(b"(;SZ[9]AB[aa];B[cc];W[ee];B[ge])")).handicap_moves == 1
    assert game_to_review(read_sgf(b"(;SZ[9];B[cc];W[ee];B[ge])")).handicap_moves == 0
    placed = game_to_review(read_sgf(b"(;SZ[9]HA[2]AB[cc][gg]KM[0.5]RU[AGA];W[ee])"))
    assert (placed.handicap, placed.komi, placed.rules.name) == (2, 0.5, "aga")
    assert placed.positions[0].meta[META_TO_MOVE] == WHITE
    assert sum(color == BLACK for color in placed.colors(0)) == 2 and placed.handicap_moves == 0


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("(;SZ[9]RU[Japanese]KM[375]BR[9段]WR[8段];B[cc];W[gg])", "chinese"),
        ("(;SZ[9]RU[Japanese]KM[650]BR[9段]WR[8段];B[cc];W[gg])", "japanese"),
        ("(;SZ[9]RU[Japanese]KM[7.5]BR[9d]WR[8d];B[cc];W[gg])", "japanese"),
    ],
)
def test_foxs_games_of_chinese_komi_have_chinese_rules(text, rules):
    """It writes RU[Japanese] into every file."""
    assert game_to_review(read_sgf(text.encode())).rules.name == rules


@pytest.mark.parametrize(
    ("text", "komi"),
    [
        ("(;SZ[9]KM[0]BR[9段]WR[8段];B[cc];W[gg])", 6.5),
        ("(;SZ[9]KM[0]BR[9段]WR[8段];B[cc];B[gg];W[ee])", 0.0),
        ("(;SZ[9]KM[0]BR[9d]WR[8d];B[cc];W[gg])", 0.0),
        ("(;SZ[9]KM[375]BR[9段]WR[8段];B[cc];W[gg])", 7.5),
        ("(;SZ[9]KM[0]BR[9段]WR[8段])", 6.5),
    ],
)
def test_the_komi_of_a_server_that_writes_none(text, komi):
    game = game_to_review(read_sgf(text.encode()))
    assert game.komi == komi == game.positions[-1].rules[RULE_KOMI_X2] / 2


def test_games_are_found_in_files_folders_and_files_of_several(tmp_path):
    (tmp_path / "deep").mkdir()
    files = {
        "a.sgf": SHORT,
        "deep/a.sgf": OTHER,
        "two.sgf": SHORT + OTHER,
        "index.sgf": SHORT,
        "broken.sgf": b"no",
        "chess.sgf": b"(;GM[2];B[aa])",
        "large.sgf": b"(;SZ[21];B[aa])",
        "empty.sgf": b"(;SZ[9])",
        "a.txt": b"x",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    out = tmp_path / "reviews"
    out.mkdir()
    (out / "a.sgf").write_bytes(SHORT.replace(b"(;", b"(;KEIMA[C]", 1))
    refused = {}
    found = list(sources([tmp_path], out, lambda name, problem: refused.update({name: problem})))
    assert [source.name for source in found] == ["a", "index-game", "two", "two-2", "a-2"]
    wrong = {name.rsplit("/", 1)[-1]: problem for name, problem in refused.items()}
    assert set(wrong) == {"broken.sgf", "chess.sgf", "large.sgf", "empty.sgf"}
    assert wrong["empty.sgf"] == "no moves" and "at most 19" in wrong["large.sgf"]
    named = list(sources([out / "a.sgf"], out, lambda name, problem: None))
    assert [source.name for source in named] == ["a"], "a review's own record may be reviewed again"


@pytest.mark.parametrize(
    ("data", "is_ours"),
    [
        (SHORT.replace(b"(;", b"(;KEIMA[C]", 1), True), (OTHER + SHORT.replace(b"(;", b"(;KEIMA[SBKV][C]", 1), True),
        (SHORT, False), (b"(;SZ[9]C[KEIMA[C\\]];B[ee])", False), (b"(;SZ[9]KEIMA[yes];B[ee])", False),
        (b"(;SZ[9];B[ee]KEIMA[C])", False), (b"KEIMA[C]", False),
    ],
)  # fmt: skip
def test_a_file_is_a_review_where_its_root_names_our_comment(data, is_ours):
    """Any SGF with the letters in it, a comment's too, was overwritten as ours."""
    assert is_review(data) is is_ours


@pytest.mark.parametrize(
    ("stem", "name"),
    [("con", "con-game"), ("Nul", "Nul-game"), ("COM1", "COM1-game"), ("aux.b", "aux-game.b"),
     ("lpt\u00b2", "lpt\u00b2-game"),
     ("con x", "con x"), ("com0", "com0"), ("console", "console")],
)  # fmt: skip
def test_names_that_windows_reserves_are_not_used(tmp_path, stem, name):
    path = tmp_path / "in" / f"{stem}.sgf"
    path.parent.mkdir()
    path.write_bytes(SHORT)
    (source,) = sources([path], tmp_path / "out", lambda name, problem: None)
    assert source.name == name


@pytest.mark.parametrize(
    "data",
    [
        b"(;SZ[9];B[ee];W[ee])", b"(;SZ[9]AB[aa]AW[ba][ab];B[ee])", b"(;SZ[9]" + b";B[];W[]" * 1001 + b")", b"",
        b"\x00" * 50, b"(;SZ[9];B[zz])", b"(;SZ[9:7];B[aa])",
    ],
)  # fmt: skip
def test_records_that_are_no_game_are_refused_in_one_line(tmp_path, data):
    path, refused = tmp_path / "x.sgf", []
    path.write_bytes(data)
    assert list(sources([path], tmp_path / "out", lambda name, problem: refused.append(problem))) == []
    assert len(refused) == 1 and "\n" not in refused[0]
