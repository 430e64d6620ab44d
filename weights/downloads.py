"""The list of networks that ``keima weights get`` downloads, ``DOWNLOADS.toml``, and names and texts of downloads.

The table of a network::

    [katago-human]
    url = "https://..."
    bytes = 99066230            # 0 = unknown
    sha256 = "..."
    sha256_from = "a copy"      # or "third parties", whose figure was not compared with a file
    licence = "its name"
    licence_url = "https://..."
    description = "one line for people: boards, and what it is good for"

Start at :func:`downloads`. :func:`engine.system.download.download` fetches a file.
"""

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from weights import DOWNLOADS, ENDINGS, NETWORK_NAME, entries, players, read_list, user_networks

SHA256 = re.compile(r"[0-9a-f]{64}")
A_COPY, THIRD_PARTIES = "a copy", "third parties"
"""Values of ``Download.sha256_from``"""


@dataclass(frozen=True)
class Download:
    """A network file on a server."""

    url: str
    bytes: int = 0
    """size of the file; 0 = unknown"""
    sha256: str = ""
    """64 hexadecimal digits in lower case; empty = unknown"""
    sha256_from: str = ""
    """``A_COPY``: of a tested file; ``THIRD_PARTIES``: published, not compared with a file; empty: given by the user"""
    licence: str = ""
    licence_url: str = ""
    description: str = ""

    @property
    def file_name(self) -> str:
        """The last part of the URL's path; may be empty."""
        return PurePosixPath(unquote(urlsplit(self.url).path)).name

    @property
    def ending(self) -> str:
        """The ending of the file's name, one of ``weights.ENDINGS``; ``.bin`` for any other, as files are recognised by
        their content."""
        return next((one for one in ENDINGS if self.file_name.lower().endswith(one)), ".bin")

    def at(self, mirror: str) -> "Download":
        """The same file in the folder ``mirror`` (a URL) of another server."""
        return Download(**vars(self) | {"url": f"{mirror.rstrip('/')}/{self.file_name}"})


def downloads() -> dict[str, Download]:
    """All networks of the list by name, in its order.

    Raises:
        ValueError: the list is missing or damaged; one line.
    """
    return read_list(DOWNLOADS, Download)


def name_for(download: Download, name: str = "") -> str:
    """The name under which a network is stored: ``name``, else the file's name in its URL without the ending.

    Raises:
        ValueError: no name, a shipped one, or one that cannot name a file; one line.
    """
    found = name or download.file_name.removesuffix(download.ending)
    if not NETWORK_NAME.fullmatch(found):
        expected = "letters, digits, '.', '_' and '-', the first one a letter or a digit (--name)"
        raise ValueError(f"{found[:40]!r} cannot name a network, expected {expected}")
    if found in entries() or found in players():
        raise ValueError(f"{found!r} is the name of a shipped network, expected another one (--name)")
    return found


def stored_at(name: str, download: Download) -> Path:
    """The path of a downloaded network.

    Raises:
        RuntimeError: the user has no home folder.
    """
    return user_networks() / f"{name}{download.ending}"


def licence_text(download: Download, sha256: str) -> str:
    """The text that is stored beside a downloaded network: its licence and its origin."""
    licence = download.licence or "not known; see the site that the file comes from"
    lines = [f"licence: {licence}", f"text of the licence: {download.licence_url}" * bool(download.licence_url)]
    lines += [f"downloaded from: {download.url}", f"SHA-256: {sha256}"]
    return "".join(f"{line}\n" for line in lines if line)
