"""HTML pages as single files without dependencies, from Jinja templates.

A template extends ``page.html``, whose content security policy forbids loading anything, and whose style, ``page.css``,
has a light and a dark theme. All values are escaped except our own drawings.
"""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from engine import __version__


def page(template: Path, **values: Any) -> str:
    """Render an HTML template.

    Besides ``values``, the template has ``text_of(NAME)``, the text of a file in the template's folder or in that of
    this module, and ``version``, the engine's version.
    """
    loader = FileSystemLoader([template.parent, Path(__file__).parent])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}

    def text_of(name: str) -> Markup:
        return Markup(loader.get_source(environment, name)[0])

    return environment.get_template(template.name).render(text_of=text_of, version=__version__, **values)
