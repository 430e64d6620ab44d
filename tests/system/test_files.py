"""Files: atomic writing, and limits on the unpacked size."""

import io
import lzma
import os
import zipfile

import numpy as np
import pytest

from engine.system.files import alone_in, read_arrays, read_packed_arrays, written_whole
from tests.memory import at_most_mib

POSIX = pytest.mark.skipif(os.name == "nt", reason="links, permissions and pipes of POSIX")
KNOWN = {"one": ("u2", (None,)), "two": ("f4", (None, 2)), "version": ("u1", ())}
SOUND = {"one": np.arange(5, dtype=np.uint16), "two": np.ones((3, 2), np.float32), "version": np.uint8(2)}


def npz(arrays, save=np.savez):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_known_arrays_come_back_and_others_are_passed_over(tmp_path, save):
    path = tmp_path / "x.npz"
    rows = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2))
    path.write_bytes(npz(SOUND | {"two": rows, "other": np.array(["a", "b"]), "objects": np.zeros(3)}, save))
    found = read_arrays(path, KNOWN)
    assert found.keys() == SOUND.keys() and found["version"] == 2
    np.testing.assert_array_equal(found["two"], rows)
    assert all(array.flags.writeable and array.flags.c_contiguous for array in found.values())
    packed = tmp_path / "x.npz.xz"
    packed.write_bytes(lzma.compress(path.read_bytes()))
    np.testing.assert_array_equal(read_packed_arrays(packed, KNOWN)["one"], SOUND["one"])
    path.write_bytes(npz({"one": np.zeros(0, np.uint16)}))
    assert read_arrays(path, KNOWN)["one"].shape == (0,)


def claiming(shape):
    """An archive whose array says that it has another shape than its data."""
    return npz({"one": SOUND["one"]}).replace(
        b"'shape': (5,), }" + b" " * 10, f"'shape': ({shape}), }}".ljust(26).encode()
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (lambda: npz({"one": np.zeros(3)}), "one holds <f8, expected <u2"),
        (lambda: npz({"one": np.array(["a"])}), "one holds <U1, expected <u2"),
        (lambda: npz({"one": SOUND["one"]}).replace(b"<u2", b"<u7"), "not a valid dtype"),
        (lambda: npz({"one": np.array([None])}), "allow_pickle=False"),
        (lambda: npz({"one": np.zeros((2, 2), np.uint16)}), r"one has shape \(2, 2\), expected any"),
        (lambda: npz({"two": np.zeros((2, 3), np.float32)}), r"two has shape \(2, 3\), expected any x 2"),
        (lambda: npz({"version": np.zeros(3, np.uint8)}), "version has shape .*, expected a single number"),
        (lambda: claiming("99999999999,"), "allocate|array data"),
        (lambda: claiming("8,"), "array data"),
        (lambda: npz(SOUND)[:-30], "not a zip file"),
        (lambda: npz(SOUND).replace(b"NUMPY", b"NUMPI", 1), "one holds .*, expected <u2"),
        (lambda: b"", "not a zip file"),
    ],
)
def test_what_is_wrong_with_an_archive_is_one_line(tmp_path, content, words, monkeypatch):
    # A checksum would find it first.
    monkeypatch.setattr(zipfile.ZipExtFile, "_update_crc", lambda *_: None)
    path = tmp_path / "x.npz"
    path.write_bytes(content())
    with pytest.raises(ValueError, match=words) as caught:
        read_arrays(path, KNOWN)
    assert "\n" not in str(caught.value)


def twice(arrays):
    """An archive that holds its arrays twice."""
    file = io.BytesIO(npz(arrays))
    with zipfile.ZipFile(file, "a") as archive:
        for name in archive.namelist():
            content = archive.read(name)
            with pytest.warns(UserWarning, match="Duplicate"):
                archive.writestr(name, content)
    return file.getvalue()


@pytest.mark.parametrize(
    ("write", "read", "words"),
    [
        (lambda zeros: lzma.compress(npz({"one": zeros})), read_packed_arrays, "more than 16,777,216 bytes"),
        (lambda zeros: lzma.compress(bytes(len(zeros))), read_packed_arrays, "more than 16,777,216 bytes"),
        (lambda zeros: npz({"one": zeros}, np.savez_compressed), read_arrays, "more than 16,777,216 bytes"),
        (lambda zeros: twice({"one": zeros[:9]}), read_arrays, "two arrays of one name"),
    ],
    ids=["packed twice", "no archive", "zip", "array given twice"],
)
def test_what_blows_up_is_given_up_before_it_takes_memory(tmp_path, write, read, words):
    path = tmp_path / "bomb"
    path.write_bytes(write(np.zeros(40 << 20, np.uint16)))
    assert path.stat().st_size < 1 << 17
    with at_most_mib(48), pytest.raises(ValueError, match=words):
        read(path, KNOWN)


@pytest.mark.parametrize("change", [lambda data: data[:-9], lambda data: data + b"x", lambda data: b"x" + data])
def test_xz_that_is_cut_or_goes_on_is_refused(tmp_path, change):
    path = tmp_path / "x.npz.xz"
    path.write_bytes(change(lzma.compress(npz(SOUND))))
    with pytest.raises(ValueError, match=r"ends too early|more data|format"):
        read_packed_arrays(path, KNOWN)


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    path, synced = tmp_path / "x", []
    monkeypatch.setattr(os, "fsync", lambda file: synced.append((os.fstat(file).st_ino, path.exists())))
    with written_whole(path) as part:
        part.write_bytes(b"new")
        inode = part.stat().st_ino
    assert path.read_bytes() == b"new" and [file.name for file in tmp_path.iterdir()] == ["x"]
    # Windows lets no folder be opened.
    assert synced == [(inode, False), (tmp_path.stat().st_ino, True)][: 1 if os.name == "nt" else 2]


def test_what_fails_leaves_the_old_file_and_no_part(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(KeyError), written_whole(path) as part:
        part.write_bytes(b"half")
        raise KeyError
    with pytest.raises(OSError, match=r"No space.*x") as caught, written_whole(path, is_shared=True) as part:
        part.write_bytes(b"half")
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(path)
    assert path.read_bytes() == b"old" and [file.name for file in tmp_path.iterdir()] == ["x"]


@POSIX
def test_a_link_stays_one_and_a_file_keeps_its_permissions(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_bytes(b"old")
    real.chmod(0o640)
    link.symlink_to(real)
    with written_whole(link) as part:
        part.write_bytes(b"new")
    assert link.is_symlink() and real.read_bytes() == b"new" and real.stat().st_mode & 0o777 == 0o640
    (tmp_path / "early").symlink_to(tmp_path / "later")
    with written_whole(tmp_path / "early") as part:
        part.write_bytes(b"new")
    assert (tmp_path / "later").read_bytes() == b"new"


@POSIX
@pytest.mark.parametrize(("umask", "permissions"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_that_the_umask_leaves(tmp_path, umask, permissions):
    """Networks and states were their owner's alone: safetensors gives its files 0600."""
    before = os.umask(umask)
    try:
        with written_whole(tmp_path / "x") as part:
            part.unlink(missing_ok=True)
            part.touch(0o600)
        assert (tmp_path / "x").stat().st_mode & 0o777 == permissions
    finally:
        os.umask(before)


@POSIX
def test_a_file_that_may_not_be_written_is_left_alone(tmp_path, monkeypatch):
    """Renaming needs no leave but the folder's."""
    path = tmp_path / "x"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "access", lambda *_: False)  # who runs tests as root may write everything
    with pytest.raises(PermissionError, match=r"Permission denied.*x"), written_whole(path):
        pass
    assert path.read_bytes() == b"old"


@POSIX
def test_a_pipe_gets_the_bytes_and_stays_a_pipe(tmp_path):
    """As root, a game printed to /dev/full or a report to /dev/stdout took that name away from the machine."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with written_whole(path) as part:
            part.write_bytes(b"new")
        assert os.read(reader, 10) == b"new" and path.is_fifo()
    finally:
        os.close(reader)
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]


def test_a_folder_is_one_processs_at_a_time(tmp_path):
    with alone_in(tmp_path / "run"):
        with pytest.raises(ValueError, match="the folder is locked by another process"), alone_in(tmp_path / "run"):
            pass
        with alone_in(tmp_path / "run", "-0of2"):
            pass
    with alone_in(tmp_path / "run"):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="expected a new or empty folder"), alone_in(tmp_path / "file"):
        pass
