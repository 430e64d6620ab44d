"""SVG drawings as elements of pages, as files, and as PNG.

Colours are CSS variables of ``page.css``, which a page sets by its theme. Drawings consist of the elements that
:func:`png` supports: ``rect``, ``circle``, ``path`` with the commands M, L, H, V and Z, ``text``, ``image`` (PNG as a
data URL), ``g`` and ``svg``.
PNG needs matplotlib, which the extra ``train`` installs.
"""

import io
import re
from base64 import b64decode
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path as Outline

STYLE = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
LIGHT = STYLE.partition("{")[2].partition("}")[0]
"""The declarations of ``page.css`` for the light theme"""
DARK = STYLE.partition("[data-theme=dark]{")[2].partition("}")[0]
"""The declarations of the dark theme, which change some of those of the light one"""
COLORS = {name.strip()[2:]: value for name, _, value in (item.partition(":") for item in LIGHT.split(";"))}
PICTURE = "svg[data-keima]"
"""CSS selector of pictures"""
PIXELS = 2
"""Pixels of a PNG for each unit of the drawing"""


def svg(width: float, height: float, drawn: str, title: str = "", attributes: str = "") -> Markup:
    """An ``svg`` element of this size.

    Args:
        drawn: SVG elements in it.
        title: text for screen readers.
    """
    said = f"<title>{escape(title)}</title>" if title else ""
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" font-size="11" role="img"'
        f" {attributes}>{said}{drawn}</svg>"
    )


class Picture(str):
    """A drawing as the text of an SVG file, which draws itself in notebooks. Its colours follow the viewer's theme."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<Picture: {len(self)} characters of SVG>"

    def save(self, path: str | PathLike[str]) -> None:
        """Write a file: PNG in light colours if its name ends in ``.png``, else SVG.

        Raises:
            ValueError: matplotlib, which PNG needs, is missing; one line.
            OSError: the file cannot be written.
        """
        file = Path(path)
        if file.suffix.lower() == ".png":
            check_png()
            file.write_bytes(png(self))
        else:
            file.write_text(self, encoding="utf-8")


def stand_alone(drawing: str, width: float | None = None) -> Picture:
    """A drawing as a picture of its own, with an opaque background, since that of a viewer may have any colour.

    The rules of its style apply to the picture alone, since notebooks put it into their page.

    Args:
        width: in pixels of a viewer; None = one for each unit of the drawing.
    """
    head, rest = drawing.split(">", 1)
    wide, high = size_of(drawing)
    shown = wide if width is None else width
    paper = f'<rect width="{wide:g}" height="{high:g}" fill="var(--paper)"/>'
    style = f"{PICTURE}{{{LIGHT};font-family:sans-serif}}@media(prefers-color-scheme:dark){{{PICTURE}{{{DARK}}}}}"
    return Picture(f'{head} data-keima="" width="{shown:g}"><style>{style}</style>{paper}{rest}\n')


def check_png() -> None:
    """Check that PNG files can be written.

    Raises:
        ValueError: matplotlib is missing; one line.
    """
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ValueError("PNG needs matplotlib: pip install matplotlib beside Keima") from error


def png(drawing: str) -> bytes:
    """A drawing as the bytes of a PNG file.

    Raises:
        ImportError: matplotlib is missing.
    """
    from matplotlib.figure import Figure

    root, written = ElementTree.fromstring(drawing), io.BytesIO()
    width, height = size_of(drawing)
    figure = Figure((width * PIXELS / 72, height * PIXELS / 72), dpi=72, facecolor=COLORS["paper"])
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    _draw(axes, root, {}, (0.0, 0.0, 1.0))
    figure.savefig(written, format="png")
    return written.getvalue()


def size_of(drawing: str) -> tuple[float, float]:
    """Width and height of a drawing, in its units."""
    width, height = ElementTree.fromstring(drawing).attrib["viewBox"].split()[2:]
    return float(width), float(height)


def _draw(
    axes: "Axes", parent: ElementTree.Element, inherited: dict[str, str], place: tuple[float, float, float]
) -> None:  # fmt: skip
    """Draw the children of an SVG element onto Matplotlib's axes, whose unit is the drawing's.

    Args:
        inherited: attributes of the enclosing elements.
        place: origin of the element's coordinates, and its scale.
    """
    from matplotlib import image
    from matplotlib.patches import Circle, PathPatch, Rectangle
    from matplotlib.transforms import Affine2D

    *corner, scale = place
    for element in parent:
        style = inherited | element.attrib
        number = {name: float(value) for name, value in element.attrib.items() if re.fullmatch(r"-?[\d.]+", value)}
        x, y = number.get("x", 0.0), number.get("y", 0.0)
        look: dict[str, Any] = {
            "transform": Affine2D().scale(scale).translate(*corner) + axes.transData,
            "alpha": float(style.get("opacity", 1)),
            "zorder": len(axes.get_children()),
        }
        shape = look | {
            "facecolor": _color(style.get("fill", "black")), "edgecolor": _color(style.get("stroke", "none")),
            "linewidth": PIXELS * scale * float(style.get("stroke-width", 1)),
        }  # fmt: skip
        match element.tag.rpartition("}")[2]:
            case "rect":
                axes.add_patch(Rectangle((x, y), number["width"], number["height"], **shape))
            case "circle":
                axes.add_patch(Circle((number["cx"], number["cy"]), number["r"], **shape))
            case "path" if "visibility" not in style:
                axes.add_patch(PathPatch(_outline(style["d"]), **shape))
            case "text":
                look |= {
                    "color": _color(style.get("fill", "black")),
                    "weight": "bold" if style.get("font-weight", "normal") != "normal" else "normal",
                }
                look |= {"ha": {"middle": "center", "end": "right"}.get(style.get("text-anchor", ""), "left")}
                axes.text(x, y, element.text or "", fontsize=PIXELS * scale * float(style.get("font-size", 11)), **look)
            case "image":
                pixels = image.imread(io.BytesIO(b64decode(style["href"].partition(",")[2])))
                low, high = x + number["width"], y + number["height"]
                axes.imshow(pixels, extent=(x, low, high, y), interpolation="nearest", **look)
            case "g" | "svg":
                inner = scale
                if "viewBox" in element.attrib:
                    inner *= number["width"] / float(element.attrib["viewBox"].split()[2])
                _draw(axes, element, style, (corner[0] + scale * x, corner[1] + scale * y, inner))


def _color(value: str) -> str:
    return COLORS[value[6:-1]] if value.startswith("var(") else value


def _outline(text: str) -> "Outline":
    """Matplotlib's path from the attribute ``d`` of an SVG path."""
    from matplotlib.path import Path as Outline

    codes = {"M": Outline.MOVETO, "Z": Outline.CLOSEPOLY}
    x, y, found = 0.0, 0.0, []
    for command, numbers in re.findall(r"([MLHVZ])([^MLHVZ]*)", text):
        values = [float(number) for number in numbers.split()]
        if command == "V":
            y = values[0]
        elif values:
            x, y = values[0], (*values, y)[1]
        found.append(((x, y), codes.get(command, Outline.LINETO)))
    return Outline([place for place, _ in found], [code for _, code in found])
