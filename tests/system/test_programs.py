"""The command lines of engines."""

import subprocess

from engine.system.programs import gnugo, keima


def test_a_file_of_the_working_folder_stands_in_for_no_module(tmp_path):
    (tmp_path / "gtp.py").write_text("raise SystemExit('not ours')")
    ended = subprocess.run(keima("--version"), cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and "keima" in ended.stdout.lower(), ended.stderr


def test_words_are_text():
    assert keima("gtp", "--size", 9)[-3:] == ["gtp", "--size", "9"]
    assert gnugo("/usr/games/gnugo", 3) == ["/usr/games/gnugo", "--mode", "gtp", "--level", "3", "--chinese-rules"]
