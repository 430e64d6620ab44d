"""Game files wherever they lie, whole and damaged."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import zipfile
import zlib
from pathlib import Path

import pytest

from engine.records.archive import MAX_FILE_BYTES, disk_bytes, documents
from tests.memory import at_most_mib


def zipped(**members):
    """A zip archive; ``__`` in a name stands for a slash."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name.replace("__", "/") + (".sgf" if isinstance(data, str) else ".zip"), data)
    return file.getvalue()


def tarred(mode, members):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return file.getvalue()


def found(path):
    """Names below the path and contents of all documents, or their problems."""
    base = len(str(path)) + 1
    read = [one for one in documents(path) if one.data or one.is_shard or one.problem]
    return {one.name[base:]: one.problem or one.data.decode() for one in read}


def test_a_folder_is_searched_to_the_bottom_in_order_of_names(tmp_path):
    for name in ("b.sgf", "a.SGF", "sub/deeper/c.sgf", "notes.txt", ".hidden/d.sgf", "._b.sgf", "__MACOSX/e.sgf"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"({path.name})")
    assert list(found(tmp_path)) == ["a.SGF", "b.sgf", "sub/deeper/c.sgf"]
    assert disk_bytes(tmp_path) == sum(one.bytes_read for one in documents(tmp_path)) == 32


def test_archives_of_all_kinds_count_as_folders(tmp_path):
    members = {"in/x.sgf": b"(x)", "in/readme.txt": b"no", "in/._x.sgf": b"no"}
    (tmp_path / "z.zip").write_bytes(zipped(a="(a)", sub__b="(b)", inner=zipped(c="(c)")))
    for ending, mode in (("tar", "w"), ("tar.gz", "w:gz"), ("tgz", "w:gz"), ("tar.bz2", "w:bz2"), ("txz", "w:xz")):
        (tmp_path / f"t.{ending}").write_bytes(tarred(mode, members))
    (tmp_path / "one.sgf.gz").write_bytes(gzip.compress(b"(g)"))
    (tmp_path / "two.sgf.bz2").write_bytes(bz2.compress(b"(h)"))
    expected = {f"t.{ending}/in/x.sgf": "(x)" for ending in ("tar", "tar.gz", "tgz", "tar.bz2", "txz")}
    expected |= {"z.zip/a.sgf": "(a)", "z.zip/sub/b.sgf": "(b)", "z.zip/inner.zip/c.sgf": "(c)"}
    assert found(tmp_path) == expected | {"one.sgf.gz": "(g)", "two.sgf.bz2": "(h)"}
    assert sum(one.bytes_read for one in documents(tmp_path)) == disk_bytes(tmp_path)


def test_a_hidden_folder_above_the_archive_does_not_matter(tmp_path):
    path = tmp_path / ".cache" / "z.zip"
    path.parent.mkdir()
    path.write_bytes(zipped(a="(a)"))
    assert found(path) == {"a.sgf": "(a)"}


def test_a_file_that_is_named_is_read_whatever_its_name(tmp_path):
    (tmp_path / "game.txt").write_text("(;)")
    assert [one.data for one in documents(tmp_path / "game.txt") if one.data] == [b"(;)"]
    with pytest.raises(ValueError, match="no such file"):
        list(documents(tmp_path / "none.sgf"))


def test_damage_is_named_and_the_rest_is_read(tmp_path):
    whole = zipped(a="(a)" * 100, b="(b)" * 100)
    torn = bytearray(whole)
    torn[torn.index(b"a.sgf") + 6] ^= 255
    (tmp_path / "torn.zip").write_bytes(torn)
    (tmp_path / "cut.zip").write_bytes(whole[:-30])
    archive = tarred("w:gz", {f"{n}.sgf": bytes(range(256)) * 40 for n in range(30)})
    (tmp_path / "cut.tgz").write_bytes(archive[: len(archive) // 2])
    (tmp_path / "none.tar").write_bytes(b"")
    (tmp_path / "deep.zip").write_bytes(zipped(b=zipped(c=zipped(d=zipped(e="(e)")))))
    (tmp_path / "old.rar").write_bytes(b"Rar!")
    (tmp_path / "empty.sgf").write_bytes(b"")
    (tmp_path / "last.sgf").write_bytes(b"(z)")
    problems = {one.name[len(str(tmp_path)) + 1 :]: one.problem for one in documents(tmp_path) if one.problem}
    assert set(problems) >= {"torn.zip/a.sgf", "cut.zip", "cut.tgz", "none.tar", "old.rar", "empty.sgf"}
    assert "deep.zip/b.zip/c.zip/d.zip" in problems
    assert all("\n" not in problem for problem in problems.values())
    read = {one.name[len(str(tmp_path)) + 1 :] for one in documents(tmp_path) if one.data}
    assert {"torn.zip/b.sgf", "last.sgf"} <= read


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "a.sgf")
    (tmp_path / "b.sgf").write_bytes(b"(z)")
    for place in (tmp_path, tmp_path / "a.sgf"):
        found = list(documents(place))
        assert [one.problem for one in found if one.problem] == ["not a regular file"]


def test_a_locked_archive_and_a_bomb_are_named(tmp_path):
    locked = bytearray(zipped(a="(a)"))
    locked[6] |= 1
    locked[locked.index(b"PK\1\2") + 8] |= 1
    (tmp_path / "locked.zip").write_bytes(locked)
    (tmp_path / "bomb.zip").write_bytes(zipped(a=" " * (MAX_FILE_BYTES + 1), b="(b)"))
    read = found(tmp_path)
    assert "encrypted" in read["locked.zip/a.sgf"]
    assert read["bomb.zip/a.sgf"] == "more than 64 MiB" and read["bomb.zip/b.sgf"] == "(b)"


def test_an_archive_inside_a_small_one_is_no_larger_than_games_ever_are(tmp_path):
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("a.sgf", bytes(MAX_FILE_BYTES))
    (tmp_path / "bomb.zip").write_bytes(zipped(a=inner.getvalue(), b="(b)"))
    assert (tmp_path / "bomb.zip").stat().st_size < 1 << 17
    with at_most_mib(16):
        read = found(tmp_path)
    assert "an archive of 67" in read["bomb.zip/a.zip"] and read["bomb.zip/b.sgf"] == "(b)"


def with_dictionary(packed: bytes, bits: int) -> bytes:
    """An ``.xz`` that asks for a dictionary of this many bits, as its first block's header says."""
    header = bytearray(packed[12 : 12 + 4 * (packed[12] + 1) - 4])
    assert header[2:4] == b"\x21\x01"
    header[4] = 2 * (bits - 12)
    return packed[:12] + header + zlib.crc32(header).to_bytes(4, "little") + packed[12 + len(header) + 4 :]


def test_an_xz_takes_no_more_memory_than_a_sound_one_needs(tmp_path):
    """Each byte of these is read by lzma.open too, which asks the system for 1 GiB."""
    sound = lzma.compress(b"(;)", preset=9 | lzma.PRESET_EXTREME)
    greedy = with_dictionary(sound, 30)
    assert lzma.decompress(greedy) == b"(;)"
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w:xz") as archive:
        archive.addfile(tarfile.TarInfo("a.sgf"), io.BytesIO())
    files = {"sound.sgf.xz": sound, "two.sgf.xz": sound + bytes(8) + sound, "greedy.sgf.xz": greedy,
             "greedy.tar.xz": with_dictionary(tar.getvalue(), 30), "cut.sgf.xz": sound[:-9]}  # fmt: skip
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    read = [document for document in documents(tmp_path) if document.data or document.problem]
    found = {Path(document.name).name: document.data.decode() or document.problem for document in read}
    assert found["sound.sgf.xz"] == "(;)" and found["two.sgf.xz"] == "(;)(;)"
    assert "emory" in found["greedy.sgf.xz"] and "emory" in found["greedy.tar.xz"]
    assert found["cut.sgf.xz"] == "it ends too early"
