"""Pictures that notebooks show."""

from os import PathLike
from pathlib import Path


class Picture(str):
    """The text of an SVG file; as the result of a notebook's cell it is drawn."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def save(self, path: "str | PathLike[str]") -> None:
        """Write the SVG file."""
        Path(path).write_text(self, encoding="utf-8")
