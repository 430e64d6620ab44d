"""SGF in and out: real files, odd files, broken files, hostile files."""

import time
import zipfile
from dataclasses import replace

import pytest

from engine.go.board import META_CAPTURED_WHITE
from engine.go.game import Game
from engine.go.geometry import BLACK, EMPTY, PASS, WHITE, from_vertex
from engine.go.rules import CUSTOM, rules_named
from engine.go.scoring import final_score_black
from engine.go.sgf import MAX_BYTES, SgfGame, read_sgf, read_sgf_games, write_sgf


def at(vertex, size=19):
    return from_vertex(vertex, size)


def test_a_plain_game():
    game = read_sgf(b"(;GM[1]FF[4]SZ[9]KM[6.5]RU[Japanese]PB[A]RE[B+2.5];B[ee];W[ce](;B[];W[tt])(;B[aa]))")
    assert (game.size, game.komi, game.rules.name, game.result) == (9, 6.5, "japanese", "B+2.5")
    assert game.moves == [(BLACK, at("E5", 9)), (WHITE, at("C5", 9)), (BLACK, PASS), (WHITE, PASS)]
    assert game.details == {"KM": "6.5", "PB": "A"}
    assert game.to_game().n_moves == 4


def test_what_follows_the_moves_wanted_is_not_read():
    """A client asks for the position before a move; stones taken off after the game must not change it."""
    data = b"(;SZ[9]AB[cc];B[aa];W[ba];B[ee]AE[aa];W[zz])"
    for n_moves, points in enumerate((["C7"], ["C7", "A9"], ["C7", "A9"])):
        game = read_sgf(data, n_moves)
        assert (game.black, len(game.moves)) == ([at("C7", 9)], n_moves)
        board = game.to_game().position.board
        assert all(board.color[at(vertex, 9)] == BLACK for vertex in points)
    assert read_sgf(data, 0).to_move == BLACK
    assert read_sgf(b"(;SZ[9]AW[cc];W[aa];B[ba])", 0).to_move == WHITE
    assert read_sgf(b"(;SZ[9]AB[cc]AB[dd])", 0).to_move == WHITE
    assert len(read_sgf(b"(;SZ[9];B[aa];W[ba])", 9).moves) == 2
    between = read_sgf(b"(;SZ[9];B[aa];W[bb];AB[cc];B[dd])", 2)
    assert (len(between.moves), between.black) == (2, []), "nor stones set up in a node of their own"


def test_missing_properties_mean_nineteen_and_unknown():
    game = read_sgf(b"(;B[pd])")
    assert (game.size, game.komi, game.rules, game.details) == (19, None, None, {})


@pytest.mark.parametrize(
    ("text", "komi"),
    [("6.5", 6.5), ("6,5", 6.5), ("0", 0.0), ("375", 7.5), ("3.75", 7.5), ("750", 7.5), ("650", 6.5), ("2.75", 5.5),
     ("7.25", None), ("-0.5", -0.5), ("", None), ("none", None), ("nan", None), ("6.3", None), ("1e9", None),
     ("6.5 points", 6.5), ("6目半", 6.5), ("6半目", 6.5), ("6½", 6.5), ("2.75子", 5.5), ("3又3/4子", 7.5),
     ("-6½", -6.5),
     ("100.0", 100.0), ("150.5", 150.5), ("361", 361.0), ("-375", -7.5), (".5", 0.5), ("6.5 zorkmids", None)],
)  # fmt: skip
def test_komi_as_servers_write_it(text, komi):
    assert read_sgf(f"(;KM[{text}];B[aa])".encode()).komi == komi


@pytest.mark.parametrize("text", ["900.5子", "-501子", "1000半", "9" * 40, "9" * 9])
def test_an_absurd_komi_counts_as_none(text):
    """It cost the whole file."""
    record = read_sgf(f"(;KM[{text}];B[aa])".encode())
    assert record.komi is None and record.to_game().n_moves == 1


def test_handicap_and_setup_stones():
    game = read_sgf(b"(;SZ[9]HA[2]AB[cc][gg];W[ee])").to_game()
    assert (game.handicap, game.to_move, game.n_moves) == (2, BLACK, 1)
    game = read_sgf(b"(;SZ[9]AB[aa:cb]AW[ii]PL[W];W[ee])").to_game()
    assert game.handicap == 0
    stones = game.start_stones()
    assert sorted(stones.values()) == [1] * 6 + [2]
    assert game.start_to_move == WHITE


@pytest.mark.parametrize("corners", [b"aa:cb", b"cb:aa", b"ca:ab", b"ab:ca"])
def test_a_rectangle_may_be_named_by_any_two_corners(corners):
    game = read_sgf(b"(;SZ[9]AB[%b]AW[ii])" % corners)
    assert sorted(game.black) == sorted(at(vertex, 9) for vertex in ("A9", "B9", "C9", "A8", "B8", "C8"))


def test_setup_in_the_middle_starts_from_the_position_reached():
    game = read_sgf(b"(;SZ[9];B[aa];W[ba];AB[ee]AE[aa];W[ab])").to_game()
    assert game.n_moves == 1
    assert game.start_stones() == {at("B9", 9): WHITE, at("E5", 9): BLACK}


@pytest.mark.parametrize(
    ("setup", "n_moves", "lead"),
    [("", 6, 1), ("AE[ea]", 6, 1), ("AB[bb]", 6, 1), ("AE[ea]AB[bb]", 6, 1), ("AB[ee]", 0, 1), ("AW[ee]", 0, 1)],
)
def test_setup_in_the_middle_keeps_prisoners_and_alone_changes_nothing(setup, n_moves, lead):
    """A White stone was captured; setting up what is there already took it back, and forgot all moves."""
    moves = ";B[ba];W[aa];B[ab];W[];B[bb];W[]"
    game = read_sgf(f"(;SZ[5]RU[Japanese]KM[0]{moves};{setup})".encode())
    board = game.to_game().position.board
    assert len(game.moves) == n_moves and board.meta[META_CAPTURED_WHITE] == lead
    assert board.color[at("A5", 5)] == EMPTY and board.color[at("B4", 5)] == BLACK


@pytest.mark.parametrize("setup", ["AE[ea]AB[bb][dd]", "AB[ee]AE[bb]PL[W]", "AW[ee];AE[ee]AW[de];W[ca];B[da];AB[eb]"])
def test_a_record_with_setup_in_mid_game_is_written_whole(setup):
    """The moves before it were left out, and the prisoners with them."""
    moves = ";B[ba];W[aa];B[ab];W[];B[bb];W[]"
    game = read_sgf(f"(;SZ[5]RU[Japanese]KM[0]{moves};{setup};B[cc])".encode()).to_game()
    assert game.position.board.meta[META_CAPTURED_WHITE] == 1
    again = read_sgf(write_sgf(game).encode()).to_game()
    assert again.earlier == game.earlier and again.moves() == game.moves()
    assert again.start_stones() == game.start_stones() and again.to_move == game.to_move
    assert final_score_black(again.position) == final_score_black(game.position)
    game.new(5)
    assert not game.earlier and ";B" not in write_sgf(game)


def test_setups_after_every_move_take_no_longer_than_the_moves(monkeypatch):
    plays = []
    play = Game.play
    monkeypatch.setattr(Game, "play", lambda game, *move: (plays.append(move), play(game, *move)))
    read_sgf(b"(;SZ[9]" + b";B[]AE[aa];W[]AE[aa]" * 100 + b")")
    assert len(plays) == 200 - 1


def test_whose_turn_it_is_may_be_told_anywhere():
    game = read_sgf(b"(;SZ[9];B[aa]PL[W];W[bb]PL[B];B[cc])")
    assert [color for color, _ in game.moves] == [BLACK, WHITE, BLACK]
    assert read_sgf(b"(;SZ[9];AB[aa];PL[W])").to_move == WHITE
    assert read_sgf(b"(;SZ[9];AB[aa][bb]PL[B])").to_move == BLACK, "though these might be handicap stones"
    assert read_sgf(b"(;SZ[9];AB[aa][bb])").to_move == WHITE
    assert read_sgf(b"(;SZ[9];B[aa];AW[bb]PL[B])").to_move == BLACK


@pytest.mark.parametrize("head", [b"", b"\xef\xbb\xbf", b"From: a mail\r\n\r\n", b"   \n"])
def test_junk_before_the_game_is_passed_over(head):
    assert len(read_sgf(head + b"(;SZ[9];B[aa];W[bb])").moves) == 2


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("(;CA[gb2312]PB[柯洁];B[aa])".encode("gb18030"), "柯洁"),
        ("(;PB[柯洁];B[aa])".encode(), "柯洁"),
        ("(;PB[柯洁];B[aa])".encode("gb18030"), "柯洁"),
        ("(;CA[utf-8]PB[柯洁];B[aa])".encode("gb18030"), "柯洁"),
        (b"(;CA[no such]PB[Cho];B[aa])", "Cho"),
        (b"(;CA[idna]PB[Cho];B[aa])", "Cho"),
        # It would be "bücher", and to find that out of many letters takes quadratic time.
        (b"(;CA[punycode]PB[bcher-kva];B[aa])", "bcher-kva"),
        (b"(;CA[unicode_escape]PB[x\\\\u0041];B[aa])", "x\\u0041"),
        (b"(;CA[utf-7]PB[+AGE-];B[aa])", "+AGE-"),
        (b"(;CA[GBK]PB[\x9b\x5d];B[aa])", "沒"),
        ("(;CA[Shift_JIS]PB[表];B[aa])".encode("shift_jis"), "表"),
        ("(;CA[big5]PB[許功蓋];B[aa])".encode("big5"), "許功蓋"),
        (b"(;CA[ISO-2022-JP]PB[" + "\u5f35".encode("iso2022_jp") + b"];B[aa])", "\u5f35"),
        ("(;CA[Big5-HKSCS]PB[許功蓋];B[aa])".encode("big5hkscs"), "許功蓋"),
        ("(;CA[EUC-JP]PB[表];B[aa])".encode("euc_jp"), "表"),
        ("(;CA[euc-kr]PB[조훈현];B[aa])".encode("euc_kr"), "조훈현"),
        ("(;CA[cp949]PB[조훈현];B[aa])".encode("cp949"), "조훈현"),
        ("(;CA[KOI8-R]PB[Динерштейн];B[aa])".encode("koi8-r"), "Динерштейн"),
        ("(;CA[windows-1251]PB[Динерштейн];B[aa])".encode("cp1251"), "Динерштейн"),
        ("(;CA[ISO-8859-2]PB[Šikšin];B[aa])".encode("iso8859-2"), "Šikšin"),
        ("(;PB[柯洁];B[aa])".encode("utf-16"), "柯洁"),
        ("(;PB[José];B[aa])".encode("latin-1"), "José"),
        ("(;PB[Jörg Müller]PW[François];B[aa])".encode("latin-1"), "Jörg Müller"),
        ("(;PB[Größe];B[aa])".encode("latin-1"), "Größe"),
        ("(;PB[芈];B[aa])".encode("gb18030"), "芈"),
        ("(;EV[名人表]PB[十]PW[小林 光一]KM[6.5];B[aa]C[表])".encode("cp932"), "十"),
        ("(;PB[林海峰]PW[許功蓋]KM[7.5];B[aa])".encode("cp950"), "林海峰"),
        ("(;CA[gb2312]PB[柯洁九];B[aa]C[好])".encode(), "柯洁九"),
        ("(;CA[gb2312]PB[柯];B[aa]C[好])".encode("utf-8-sig"), "柯"),
        ("(;CA[ISO8859-1]PB[柯洁];B[aa])".encode(), "柯洁"),
        ("(;PB[柯洁];B[aa]C[好".encode()[:-1] + b"])", "柯洁"),
    ],
)
def test_names_in_encodings_right_wrong_and_missing(data, name):
    game = read_sgf(data)
    assert game.details["PB"] == name
    assert game.moves == [(BLACK, at("A19"))]


def test_old_long_property_names():
    game = read_sgf(b"(;GaMe[1]SiZe[9];Black[aa];White[bb])")
    assert game.moves == [(BLACK, at("A9", 9)), (WHITE, at("B8", 9))]


def shown(game):
    """A game of a collection by its black player, an error by its words."""
    return game.details["PB"] if isinstance(game, SgfGame) else str(game)


def test_all_games_of_a_collection_are_read():
    data = b"junk (here)\n(;FF[4]PB[a];B[aa](;W[bb])(;W[cc]))\n(;GM[1]PB[b (;FF[4\\]];B[dd])  (\n;PB[c])"
    assert [shown(game) for game in read_sgf_games(data)] == ["a", "b (;FF[4]", "c"]
    assert shown(read_sgf(data)) == "a"


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"(;FF[4]PB[a];B[aa]\n(;GM[1]FF[4]PB[b];B[bb])", ["SGF: unexpected end", "b"]),
        (b"(;FF[4]PB[a];B[aa(;W[bb])\n(;SZ[9]PB[b];B[bb])(;PB[c]", ["SGF: ", "b", "SGF: unexpected end"]),
        (b"(;PB[a];B[zz])(;PB[b];B[bb])", ["SGF: [zz] is not a point", "b"]),
        (b"(;GM[2])(;PB[b])", ["SGF: GM[2]", "b"]),
        (b"no game", ["SGF: no game in the file"]),
        (b"", ["SGF: no game in the file"]),
    ],
)
def test_a_broken_game_does_not_take_the_next_with_it(data, expected):
    found = [shown(game) for game in read_sgf_games(data)]
    assert len(found) == len(expected)
    assert all(name.startswith(start) for name, start in zip(found, expected, strict=True)), found


def test_the_encoding_named_in_the_first_game_holds_for_the_file():
    text = "(;CA[big5]PB[許功蓋];B[aa])(;PB[許功蓋];B[bb])"
    assert [shown(game) for game in read_sgf_games(text.encode("big5"))] == ["許功蓋", "許功蓋"]


def test_splitting_takes_no_longer_than_the_bytes_deserve():
    for data in (b"(;" * 500000, b"(;C" + b"[" * 1000000, b"(;" + b"a" * 1000000, b"(;(" + b" " * 1000000 + b"x"):
        started_s = time.process_time()
        assert all(isinstance(game, ValueError) for game in read_sgf_games(data))
        assert time.process_time() - started_s < 10


def test_details_are_kept_as_they_are_written():
    game = read_sgf(b"(;KM[375]DT[2017-01-02 x]BR[ 9d? ]WR[]TM[60]C[no]RE[B+R];B[aa]DT[later])")
    assert game.details == {"KM": "375", "DT": "2017-01-02 x", "BR": "9d?", "TM": "60"}


def test_tt_is_a_pass_up_to_nineteen_and_a_point_beyond():
    assert read_sgf(b"(;SZ[19];B[tt])").moves == [(BLACK, PASS)]
    assert read_sgf(b"(;SZ[21];B[tt])").moves == [(BLACK, at("U2", 21))]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "SGF"),
        (b"hello", "SGF"),
        (b"(;SZ[9];B[aa]", "SGF"),
        (b"(;GM[2];B[aa])", "expected GM"),
        (b"(;SZ[19:13];B[aa])", "square"),
        (b"(;SZ[26];B[aa])", "square"),
        (b"(;SZ[nine];B[aa])", "not a board size"),
        (b"(;SZ[9];B[zz])", "not a point"),
        (b"(;SZ[9];B[a])", "not a point"),
        (b"(;SZ[9];B[a\n;B[bb])", "not a point"),
        (bytes(range(256)) * 20, "SGF"),
        (b"(;SZ[9]" + b"(;B[aa]" * 100000, "nodes|nested|SGF"),
        (b"(;" + b"(" * 1000000, "nested"),
        (b"(" * 1000000, "no game"),
        (b"(" + b";" * 1000000 + b")", "nodes"),
        (b"(;C[" + b"x" * (MAX_BYTES + 1) + b"])", "at most"),
        (b"(;C[" + b"\\]" * 1000000 + b"])", "backslashes"),
        (b"(;C" + b"[" * 1000000, "end of SGF"),
        (b"(;C" + b"[" * 1000000 + b"\\", "end of SGF"),
        (b"[junk (" + b";" * 1000000 + b")", "no game|nodes"),
        (b"[junk (;" + b";" * 1000000 + b")", "nodes"),
        (b"(;AB[" + b"aa:ss][" * 500000 + b"aa])", "values"),
        (b"(;SZ[25];AB" + b"[aa:yy]" * 400000 + b")", "a list of more than"),
        (b"(;SZ[25]" + b";AB[aa:yy]" * 90000 + b")", "setups"),
        (b"(;SZ[19]" + b";B[aa];AE[aa]" * 45000 + b")", "setups"),
        (b"(;GM[" + b"3" * 100000 + b"])", "expected GM"),
        ("(;SZ[²];B[aa])".encode(), "not a board size"),
        (b"(;PB[" + b" \n" * 2_000_000 + b"x];B[aa])", "PB of 4000001 bytes, at most 131072"),
        (b"(;CA[idna]PB[\xff];SZ[9];B[aa]", "SGF"),
    ],
)
def test_what_cannot_be_read_is_one_line_and_quick(data, words):
    started_s = time.process_time()
    with pytest.raises(ValueError, match=words) as caught:
        read_sgf(data)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 200
    assert time.process_time() - started_s < 10


def test_an_impossible_move_says_which():
    with pytest.raises(ValueError, match="move 2 at aa is illegal"):
        read_sgf(b"(;SZ[9];B[aa];W[aa])").to_game()
    with pytest.raises(ValueError, match="move 4 at aa is illegal"):
        read_sgf(b"(;SZ[5];B[ab];W[ee];B[ba];W[aa])").to_game()


@pytest.mark.parametrize("text", ["Chinese Rules", "chinese rule"])
def test_rules_may_be_called_so(text):
    assert read_sgf(f"(;RU[{text}])".encode()).rules == rules_named("chinese")


@pytest.mark.parametrize("komi", [-200.0, -99.5, 7.5, 100.0, 150.5, 361.0, 650.0])
def test_any_komi_that_is_written_reads_back(komi):
    assert read_sgf(write_sgf(Game(9, komi=komi)).encode()).komi == komi


def test_moves_of_a_file_that_names_the_wrong_encoding_are_all_there():
    """Brackets were taken for halves of characters: of six moves two were gone."""
    text = "(;CA[gb2312]SZ[9]KM[7.5];B[cc]C[好];W[dd];B[ee]C[好];W[ff];B[gg];W[hh])"
    game = read_sgf(text.encode())
    assert (len(game.moves), game.komi, game.size) == (6, 7.5, 9)


def test_what_is_written_reads_back():
    game = Game(9, rules_named("japanese"), 6.5)
    game.set_free_handicap([at("C3", 9), at("G7", 9)])
    for color, vertex in ((WHITE, "E5"), (BLACK, "pass"), (WHITE, "A9")):
        game.play(color, at(vertex, 9))
    text = write_sgf(game, black="B]", white="Ω", result="W+R")
    for part in ("FF[4]", "GM[1]", "SZ[9]", "CA[UTF-8]", "KM[6.5]", "HA[2]", "RU[Japanese]", "RE[W+R]", ";B[];"):
        assert part in text
    record = read_sgf(text.encode())
    again = record.to_game()
    assert again.moves() == game.moves()
    assert (again.size, again.komi, again.rules, again.handicap) == (9, 6.5, game.rules, 2)
    assert again.start_stones() == game.start_stones()
    assert (record.details["PB"], record.details["PW"]) == ("B]", "Ω") and record.result == "W+R"
    assert (again.position.board.hash == game.position.board.hash).all()


@pytest.mark.parametrize("to_move", [BLACK, WHITE])
@pytest.mark.parametrize("white", [[], ["E5"]])
@pytest.mark.parametrize("n_moves", [0, 1])
def test_whose_turn_it_is_after_setup_stones_is_written(to_move, white, n_moves):
    game = Game(9)
    game.setup_stones([at("C3", 9), at("G7", 9)], [at(vertex, 9) for vertex in white], to_move)
    for _ in range(n_moves):
        game.play(to_move, at("A1", 9))
    again = read_sgf(write_sgf(game).encode()).to_game()
    assert (again.start_to_move, again.to_move) == (game.start_to_move, game.to_move)
    assert again.position.hashes[: n_moves + 1].tolist() == game.position.hashes[: n_moves + 1].tolist()


def test_rules_and_komi_in_force_hold_where_the_file_does_not_name_them():
    custom = replace(rules_named("chinese"), name=CUSTOM, suicide=True)
    text = write_sgf(Game(9, custom, 6.5))
    assert "RU[koSIMPLEscoreAREAtaxNONEwhbNsui1button0fpok1]" in text
    again = read_sgf(text.encode()).to_game(rules_named("japanese"), 0.5)
    assert (again.rules, again.komi) == (custom, 6.5)
    unknown = read_sgf(b"(;SZ[9]RU[Egyptian])").to_game(custom, 0.5)
    assert unknown.rules == custom
    named = read_sgf(b"(;SZ[9]RU[Japanese])").to_game(custom, 0.5)
    assert (named.rules.name, named.komi) == ("japanese", 0.5)


def test_ings_rules_have_the_standards_name():
    assert read_sgf(b"(;SZ[9]RU[GOE])").rules.name == "goe"
    assert "RU[GOE]" in write_sgf(Game(9, rules_named("ing"), 7.5))


@pytest.mark.shared
def test_every_real_file_reads_and_replays(shared_path):
    with zipfile.ZipFile(shared_path / "data" / "sgf_samples.zip") as archive:
        lines = archive.read("MANIFEST.tsv").decode("utf-8").splitlines()
        columns = lines[0].split("\t")
        for line in lines[1:]:
            row = dict(zip(columns, line.split("\t"), strict=True))
            game = read_sgf(archive.read(row["file"]))
            assert len(game.moves) == int(row["main_line_moves"]), row["file"]
            assert game.to_game().n_moves == len(game.moves)
