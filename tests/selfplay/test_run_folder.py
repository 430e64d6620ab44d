"""Which folders a run may begin in."""

import pytest

from engine.selfplay.labelling import check_out
from engine.selfplay.run_folder import refuse_foreign


@pytest.mark.parametrize(
    "names",
    [(), ("run.json",), ("run.json", "letter.txt"), ("run.lock", "run.json.partial"), (".games-1.partial",)],
)
def test_a_run_begins_where_there_is_nothing_else(tmp_path, names):
    refuse_foreign(tmp_path / "new", "run.json", "runs")
    for name in names:
        (tmp_path / name).write_text("")
    refuse_foreign(tmp_path, "run.json", "runs", also=("games",))


@pytest.mark.parametrize("name", ["letter.txt", "letter.partial", "run.json.old", "games.json"])
def test_a_folder_of_something_else_is_refused(tmp_path, name):
    (tmp_path / name).write_text("dear")
    with pytest.raises(ValueError, match="already there, expected a new or empty folder, or one of runs"):
        refuse_foreign(tmp_path, "run.json", "runs")


def test_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("dear")
    with pytest.raises(ValueError, match="expected a new or empty folder"):
        refuse_foreign(tmp_path / "file", "run.json", "runs")


def test_labels_are_made_beside_their_games(tmp_path):
    for name in (".games-1.partial", "labels.json.partial"):
        (tmp_path / name).mkdir()
    check_out(tmp_path)
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="or one of labels"):
        check_out(tmp_path)
