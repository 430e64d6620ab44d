"""The settings file: where it is looked for, what may stand in it, what is said of mistakes, and writing it."""

import sys
import tomllib
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from engine.config import PlayOptions, SearchOptions, SetupOptions
from engine.config.declaration import help_text
from gtp.cli import settings
from gtp.cli.gtp import gtp
from gtp.cli.settings import KINDS, chosen_file, read_settings, render, toml_value, user_file, write_settings
from tests.gtp.process import start
from weights import FOLDER

DEFAULTS = {item.name: item.default for kind in KINDS for item in fields(kind)}
GIVEN = {name: value for name, value in DEFAULTS.items() if value is not None}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "keima.toml"


def run(*options: str, **environment: str):
    return CliRunner().invoke(gtp, options, env=environment)


def printed(*options: str, **environment: str) -> dict:
    """What ``--print-config`` says is in force."""
    answer = run("--print-config", *options, **environment)
    assert answer.exit_code == 0, answer.output
    return tomllib.loads(answer.stdout)


# --- Printing a file and reading it back ---


def test_the_printed_file_has_every_option_with_its_help_and_default():
    text = render(DEFAULTS)
    assert tomllib.loads(text) == {name.replace("_", "-"): value for name, value in GIVEN.items()}
    assert "\n# live-graphics = true\n" in text, "an option that is not given stays so"
    comments = " ".join(" ".join(line[1:] for line in text.splitlines() if line.startswith("#")).split())
    for kind in (SetupOptions, PlayOptions, SearchOptions):
        for item in fields(kind):
            default = f"; default {toml_value(item.default)}" if item.name in GIVEN else ""
            assert help_text(item) + default in comments


def test_defaults_in_a_file_change_nothing(file):
    file.write_text(render(DEFAULTS), encoding="utf-8")
    assert read_settings(file) == GIVEN
    assert printed("--config", str(file)) == printed()


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--visits", "500"],
        ["--visits", "500", "--seconds", "2"],
        ["--ponder", "--no-early-stop", "--no-random-symmetry", "--komi", "-0.5", "--size", "13", "--device", "cpu"],
        ["--weights", "none", "--rules", "japanese", "--seed", str(2**63 - 1), "--move-choice", "lcb"],
        ["--root-noise", "1e-7", "--seconds", "1e-05", "--memory", "2048", "--batch", "32", "--threads", "3"],
        ["--weights", "default"],
    ],
)
def test_a_printed_file_given_back_means_the_same(file, options):
    first = run("--print-config", *options).stdout
    file.write_text(first, encoding="utf-8")
    assert run("--print-config", "--config", str(file)).stdout == first


def test_files_of_networks_are_printed_with_their_whole_path(tmp_path, monkeypatch, file):
    name = 'my "net" ü.safetensors'
    (tmp_path / name).write_bytes((FOLDER / "small.safetensors").read_bytes())
    monkeypatch.chdir(tmp_path)
    assert printed("--weights", name)["weights"] == str(tmp_path / name)
    file.write_text(run("--print-config", "--weights", name).stdout, encoding="utf-8")
    assert printed("--config", str(file))["weights"] == str(tmp_path / name)


@given(st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()))
def test_every_value_comes_back_from_toml(value):
    back = tomllib.loads(f"x = {toml_value(value)}")["x"]
    assert back == value and type(back) is type(value)


def test_what_is_no_text_is_refused():
    with pytest.raises(ValueError, match="cannot be written to a settings file"):
        toml_value("a\udcff")


# --- Which file, and what goes before what ---


def test_the_command_line_goes_before_the_file_and_the_file_before_the_defaults(file):
    file.write_text("batch = 16\nlag = 2\nponder = true\n")
    found = printed("--config", str(file), "--batch", "4", "--no-ponder")
    assert (found["batch"], found["lag"], found["ponder"], found["seconds"]) == (4, 2.0, False, 3.0)


@pytest.mark.parametrize(
    ("text", "options", "visits", "seconds"),
    [
        ("", [], 0, 3.0),
        ("", ["--visits", "9"], 9, 0.0),
        ("seconds = 5", ["--visits", "9"], 9, 0.0),
        ("visits = 9", [], 9, 0.0),
        ("visits = 9\nseconds = 5", [], 9, 5.0),
        ("visits = 9", ["--seconds", "5"], 9, 5.0),
        ("visits = 9\nseconds = 5", ["--visits", "8"], 8, 0.0),
        ("", ["--visits", "9", "--seconds", "5"], 9, 5.0),
    ],
)
def test_a_limit_of_visits_takes_the_place_of_seconds_that_are_no_nearer(file, text, options, visits, seconds):
    file.write_text(text)
    found = printed("--config", str(file), *options)
    assert (found["visits"], found["seconds"]) == (visits, seconds)


def test_the_file_named_goes_before_the_variable_and_that_before_the_users_own(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    own = tmp_path / "home" / "keima" / "keima.toml"
    own.parent.mkdir(parents=True)
    for path, batch in ((own, 3), (tmp_path / "variable.toml", 4), (tmp_path / "named.toml", 5)):
        path.write_text(f"batch = {batch}")
    home = {"XDG_CONFIG_HOME": str(tmp_path / "home"), "KEIMA_CONFIG": ""}
    variable = home | {"KEIMA_CONFIG": str(tmp_path / "variable.toml")}
    assert printed(**home)["batch"] == 3
    assert printed(**variable)["batch"] == 4
    assert printed("--config", str(tmp_path / "named.toml"), **variable)["batch"] == 5
    assert printed("--config", "none", **variable)["batch"] == 0
    assert printed(**home | {"KEIMA_CONFIG": "none"})["batch"] == 0


def test_the_users_own_file_lies_in_the_config_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "user_folder", lambda kind: tmp_path / kind)
    monkeypatch.delenv("KEIMA_CONFIG")
    assert user_file() == chosen_file(None) == tmp_path / "config" / "keima.toml"
    assert read_settings(user_file()) == {}


def test_without_a_home_folder_there_is_no_file(monkeypatch):
    def no_home(kind):
        raise RuntimeError("no home")

    monkeypatch.setattr(settings, "user_folder", no_home)
    monkeypatch.delenv("KEIMA_CONFIG")
    assert chosen_file(None) is None


def test_a_file_that_lies_in_the_working_folder_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "keima.toml").write_text("batch = 99")
    monkeypatch.chdir(tmp_path)
    assert printed(KEIMA_CONFIG="", XDG_CONFIG_HOME=str(tmp_path / "no"), HOME=str(tmp_path / "no"))["batch"] == 0


def test_a_file_that_was_named_must_exist(tmp_path):
    gone = str(tmp_path / "gone.toml")
    for answer in (run("--config", gone), run(KEIMA_CONFIG=gone), run("--config", str(tmp_path))):
        assert answer.exit_code == 1 and answer.stdout == ""
        assert answer.stderr.startswith("Error: settings file ") and "no such file" in answer.stderr
    assert "(from $KEIMA_CONFIG)" in run(KEIMA_CONFIG=gone).stderr


def test_networks_are_looked_for_beside_the_file(tmp_path, file):
    network = tmp_path / "nets" / "a.safetensors"
    network.parent.mkdir()
    network.touch()
    for text, expected in (
        ("nets/a.safetensors", str(network)),
        ("nets/a.safetensors+small", f"{network}+small"),
        (str(network), str(network)),
        *((name, name) for name in ("none", "default", "small")),
    ):
        file.write_text(f"weights = {toml_value(text)}")
        assert read_settings(file) == {"weights": expected}


# --- Mistakes ---


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bacth = 8", 'unknown key "bacth" = 8, did you mean batch?'),
        ("resign_below = -1.0", 'unknown key "resign_below" = -1.0, did you mean resign-below?'),
        ('"" = 1', 'unknown key "" = 1, expected an option without its dashes'),
        (r'"a\nb" = 1', r'unknown key "a\nb" = 1, '),
        ("[search]\nbatch = 8", 'unknown key "search" = {"batch": 8}, '),
        ("batch = 600", "batch is 600, expected 0 to 512"),
        ('batch = "8"', 'batch is "8", expected a whole number'),
        ("batch = 8.0", "batch is 8.0, expected a whole number"),
        ("batch = true", "batch is true, expected a whole number"),
        ("ponder = 1", "ponder is 1, expected true or false"),
        ("weights = 6", "weights is 6, expected text in quotes"),
        ("lag = [1]", "lag is [1], expected a number"),
        ("lag = nan", "lag is nan, expected 0.0 to 60.0 s"),
        ("komi = inf", "komi is inf, expected whole or half points"),
        ("komi = 6.3", "komi is 6.3, expected whole or half points"),
        (f"komi = {10**400}", "komi is 1000"),
        ("size = 26", "size is 26, expected 2 to 25"),
        ('rules = "checkers"', "checkers"),
        ('move-choice = "best"', 'move-choice is "best", expected visits or lcb'),
        ("seed = 9223372036854775808", "seed is 9223372036854775808, expected 0 to 9223372036854775807"),
        ("batch = 8\nlag = = 1", "not valid TOML (Invalid value (at line 2, column 7))"),
        ("batch = 8\nbatch = 9", "not valid TOML (Cannot overwrite a value (at "),
        (f"seed = {'9' * 5000}", "not valid TOML ("),
        ("x = " + "[" * 5000, "not valid TOML ("),
    ],
)
def test_a_mistake_is_one_line_with_file_key_value_and_what_was_expected(file, text, message):
    file.write_text(text)
    with pytest.raises(ValueError) as caught:
        read_settings(file)
    told = str(caught.value)
    assert told.startswith(f"{file}: ") and "\n" not in told and message in told and len(told) < len(str(file)) + 200


def test_bytes_that_are_no_text_and_files_that_cannot_be_read_are_told(tmp_path, file):
    file.write_bytes(b'rules = "\xff"')
    with pytest.raises(ValueError, match="byte 9 is not UTF-8"):
        read_settings(file)
    with pytest.raises(ValueError, match="cannot be read"):
        read_settings(tmp_path)


def test_a_file_that_is_far_too_long_for_settings_is_not_read(file):
    file.write_text("# " + "x" * (1 << 20))
    with pytest.raises(ValueError, match=r"keima.toml: more than 1,048,576 bytes, expected a settings file$"):
        read_settings(file)


def test_what_windows_makes_of_a_text_is_no_mistake(file):
    text = "batch = 16\r\nponder = true\r\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        file.write_bytes(text.encode(encoding))
        assert read_settings(file) == {"batch": 16, "ponder": True}


def test_a_log_beside_the_settings_file_and_one_at_home(tmp_path, file, monkeypatch):
    file.write_text('log-file = "logs/keima.log"')
    assert printed("--config", str(file))["log-file"] == str(tmp_path / "logs" / "keima.log")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert printed("--log-file", "~/keima.log")["log-file"] == str(tmp_path / "keima.log")


def test_pattern_policies_beside_the_settings_file(tmp_path, file):
    file.write_text('patterns = "r.npz+tree"')
    assert printed("--config", str(file))["patterns"] == f"{tmp_path / 'r.npz'}+tree"


def test_a_network_that_is_not_there_is_told_with_the_file_that_named_it(file):
    file.write_text('weights = "gone.safetensors"')
    answer = run("--config", str(file))
    assert answer.exit_code == 1
    assert answer.stderr.startswith(f"Error: {file}: weights: unknown network ")
    assert run("--config", str(file), "--weights", "gone").stderr.startswith("Error: unknown network 'gone'")


def test_numbers_that_are_none_are_refused_on_the_command_line():
    answer = run("--lag", "nan")
    assert answer.exit_code == 1 and "lag is nan, expected 0.0 to 60.0 s" in answer.stderr


def test_the_process_ends_with_one_line_and_says_nothing_to_the_client(file):
    file.write_text("visits = -5")
    process = start("--config", str(file))
    output, errors = process.communicate(b"name\nquit\n", timeout=60)
    assert (process.returncode, output) == (1, b"")
    assert errors.decode().strip() == f"Error: {file}: visits is -5, expected 0 to 1000000000"


def test_the_process_says_which_file_it_follows(file):
    file.write_text("visits = 5")
    process = start("--config", str(file))
    output, errors = process.communicate(b"name\nquit\n", timeout=60)
    assert (process.returncode, output) == (0, b"= Keima\n\n=\n\n")
    assert f"settings from {file}" in errors.decode()


# --- Writing ---

OWN = """\
# my settings
threads=4   # for the big machine
 batch =  8# small
komi = 6.5

rules = "japanese"
# batch = 99
"""


def test_writing_changes_the_values_and_nothing_else(file):
    file.write_text(OWN)
    write_settings(file, {"threads": 0, "batch": 32, "evaluators": 2})
    expected = OWN.replace("threads=4 ", "threads=0 ").replace("batch =  8#", "batch =  32#") + "evaluators = 2\n"
    assert file.read_text() == expected
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_writing_makes_the_file_and_its_folder(tmp_path):
    path = tmp_path / "new" / "keima.toml"
    write_settings(path, {"batch": 16})
    assert path.read_text() == "batch = 16\n"


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there, and permissions are others")
def test_writing_keeps_line_ends_links_and_permissions(tmp_path, file):
    real = tmp_path / "real.toml"
    real.write_bytes(b"komi = 0.5\r\nlag = 1")
    real.chmod(0o600)
    file.symlink_to(real)
    write_settings(file, {"batch": 16})
    assert real.read_bytes() == b"komi = 0.5\r\nlag = 1\r\nbatch = 16\r\n"
    assert file.is_symlink() and real.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("text", ['rules = """\nbatch = 5\n"""', "batch = 5\nbacth = 6", "batch"])
def test_a_file_that_is_not_sound_is_left_alone(file, text):
    file.write_text(text)
    with pytest.raises(ValueError, match=r"keima\.toml"):
        write_settings(file, {"batch": 16})
    assert file.read_text() == text


def test_a_value_in_any_form_of_toml_is_replaced(file):
    file.write_text('weights = """default"""\n"bat\\u0063h" = 5\n')
    write_settings(file, {"batch": 16})
    assert read_settings(file) == {"weights": "default", "batch": 16}


@given(st.dictionaries(st.sampled_from(["threads", "batch", "evaluators"]), st.integers(1, 99)))
def test_the_edited_file_holds_the_new_values_and_the_other_old_ones(values):
    with TemporaryDirectory() as folder:
        path = Path(folder) / "keima.toml"
        path.write_text(OWN)
        write_settings(path, values)
        assert tomllib.loads(path.read_text()) == tomllib.loads(OWN) | values


def test_a_key_of_earlier_versions_is_told_and_left_out(tmp_path, capsys):
    path = tmp_path / "keima.toml"
    path.write_text("mercy = 0.0\nvisits = 7\n")
    assert read_settings(path) == {"visits": 7}
    assert capsys.readouterr().err == f"{path}: option mercy was removed: rollouts are played to the end\n"
