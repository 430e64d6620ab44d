"""In which encoding an SGF file is written: as it says, or as its bytes look.

Many files say nothing, or what a program before did: text converted to UTF-8 keeps the old name, programs write UTF-8
and mean the encoding of their system. In some encodings a byte inside a character may look like a bracket or a
backslash, so the choice decides about moves too, not about names alone.
"""

import codecs
import contextlib
import re

WIDE_ENCODINGS = {"gb2312": "gb18030", "gbk": "gb18030", "gb18030": "gb18030", "big5": "cp950", "cp950": "cp950",
                  "big5hkscs": "big5hkscs", "shift_jis": "cp932", "cp932": "cp932", "utf-16": "utf-16",
                  "iso2022_jp": "iso2022_jp_2", "iso2022_kr": "iso2022_kr"}  # fmt: skip
"""By Python's name of a multi-byte encoding, the largest one of its family to read it by. In all of them a byte inside
a character may look like a bracket or a backslash."""
NARROW_ENCODINGS = {
    *("ascii", "utf-8", "utf-8-sig", "euc_jp", "euc_kr", "cp949", "koi8-r", "koi8-u", "mac-roman", "tis-620"),
    *(f"iso8859-{part}" for part in (*range(1, 12), *range(13, 17))),
    *(f"cp{page}" for page in (437, 850, 852, 866, 874, *range(1250, 1259))),
}
"""Python's names of the other encodings that people write. No other is read by, for some take quadratic time."""
FALLBACKS = ("utf-8", "gb18030", "shift_jis")
"""Tried in this order for a value that is not in the file's encoding; then it is read as Latin-1, which never fails."""
_SAMPLE = 1 << 16
"""Bytes that are enough to guess an encoding by: from the first one beyond ASCII on"""
_COMMON = {
    "gb18030": re.compile(rb"[\xa1-\xa3\xb0-\xd7][\xa1-\xfe]"),
    "cp932": re.compile(rb"\x81[\x40-\x9f]|\x82[\x4f-\xf1]|\x83[\x40-\x96]|[\x88-\x97][\x40-\xfc]"),
    "cp950": re.compile(rb"[\xa1-\xa3\xa4-\xc6][\x40-\x7e\xa1-\xfe]"),
}
"""By encoding, the characters that texts mostly consist of: signs, kana, and the first level of Chinese characters"""
_WIDE = {
    "gb18030": re.compile(rb"[\x81-\xfe](?:[\x30-\x39][\x81-\xfe][\x30-\x39]|[\x40-\x7e\x80-\xfe])|[\x80-\xff]"),
    "cp932": re.compile(rb"[\x81-\x9f\xe0-\xfc][\x40-\x7e\x80-\xfc]|[\x80-\xff]"),
    "cp950": re.compile(rb"[\x81-\xfe][\x40-\x7e\xa1-\xfe]|[\x80-\xff]"),
}
"""By encoding, its characters beyond ASCII, and bytes that are no character or, in Japanese, half of a wide one"""
_ACCENTED = re.compile(rb"(?<![\x80-\xff])[\xc0-\xff](?![\x80-\xff])|(?<=[A-Za-z])[\xc0-\xff]{2}(?=[A-Za-z])")
"""A letter with an accent among plain ones, or two: what Western text has beyond ASCII"""
_THREE_BYTES = re.compile("[\u0800-\U0010ffff]")
_BEYOND = re.compile(rb"[\x80-\xff]")


def in_known_encoding(data: bytes) -> tuple[bytes, str]:
    """The file, converted to UTF-8 where brackets could hide in characters, and its encoding from then on."""
    encoding = _encoding_of(data)
    if encoding in WIDE_ENCODINGS:
        # Only in UTF-8 is a bracket always a bracket. Where the file is not what it says, its bytes must do.
        with contextlib.suppress(UnicodeError):
            return data.decode(WIDE_ENCODINGS[encoding]).encode(), "utf-8"
    return data, encoding


def text_of(raw: bytes, encoding: str) -> str:
    """A value as text, decoded by the file's encoding or, where that fails, by one of ``FALLBACKS``."""
    for known in (encoding, *FALLBACKS):
        with contextlib.suppress(UnicodeError):
            return raw.decode(known)
    return raw.decode("latin-1")


def _encoding_of(data: bytes) -> str:
    """Python's name of a file's encoding."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    declared = _declared(data)
    try:
        text = data.decode()
    except UnicodeError:
        # A name of UTF-8 that is wrong says nothing.
        return _guessed(data) if declared in ("", "utf-8", "utf-8-sig", "ascii") else declared
    # Other encodings' text is hardly ever UTF-8 by chance, and never as characters of three bytes.
    return declared if declared and not _THREE_BYTES.search(text) else "utf-8"


def _declared(data: bytes) -> str:
    """Python's name of the encoding that the first CA property names; empty if there is none that people use."""
    found = re.search(rb"(?<![A-Za-z])CA\s*\[([\w .:-]{1,40})\]", data[:10000])
    try:
        name = codecs.lookup(found[1].decode("ascii").strip()).name if found else ""
    except (LookupError, ValueError):
        return ""
    return name if name in WIDE_ENCODINGS or name in NARROW_ENCODINGS else ""


def _guessed(data: bytes) -> str:
    """The encoding whose common characters the bytes are, UTF-8 that is damaged somewhere included."""
    first = _BEYOND.search(data)
    sample = data[max(0, first.start() - 1) :][:_SAMPLE] if first else b""
    n_beyond = len(_BEYOND.findall(sample))
    shares = {}
    for name, wide in _WIDE.items():
        signs = wide.findall(sample)
        shares[name] = sum(map(bool, map(_COMMON[name].fullmatch, signs))) / max(1, len(signs))
    shares["latin-1"] = len(_ACCENTED.findall(sample)) / max(1, n_beyond)
    shares["utf-8"] = len(_BEYOND.findall(sample.decode(errors="ignore").encode())) / max(1, n_beyond)
    # Of equals the first: Chinese files are the most of those that say nothing.
    return max(("gb18030", "latin-1", "cp932", "cp950", "utf-8"), key=lambda name: shares[name])
