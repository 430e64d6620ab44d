"""SVG drawings as elements of pages, as files, and as PNG.

Colours are CSS variables of ``page.css``, which a page sets by its theme. Drawings consist of the elements that
:func:`png` supports: ``rect``, ``circle``, ``path`` with the commands M, L, H, V and Z, ``text``, ``image`` (PNG as a
data URL), ``g`` and ``svg``.
PNG needs matplotlib, which the extra ``train`` installs.
"""

import io
import re
from base64 import b64decode
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from markupsafe import Markup, escape

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path as Outline

LIGHT = (Path(__file__).parent / "page.css").read_text(encoding="utf-8").partition("}")[0] + "}"
"""The rule of ``page.css`` that sets the colours of the light theme"""
DECLARATIONS = (item.partition(":") for item in LIGHT.partition("{")[2].rstrip("}").split(";"))
COLORS = {name.strip()[2:]: value for name, _, value in DECLARATIONS if name.strip().startswith("--")}
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


def stand_alone(drawing: str) -> str:
    """A drawing as the text of an SVG file, with an opaque background, since that of a viewer may be dark."""
    head, rest = drawing.split(">", 1)
    width, _ = size_of(drawing)
    paper = '<rect width="100%" height="100%" fill="var(--paper)"/>'
    style = f"<style>{LIGHT}svg{{font-family:sans-serif}}</style>"
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head} width="{width:g}">{style}{paper}{rest}\n'


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
                look |= {"color": _color(style.get("fill", "black")), "weight": style.get("font-weight", "normal")}
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
