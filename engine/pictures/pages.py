"""Pages of HTML that need nothing else: no server, no network, no other file.

A template extends ``page.html``, whose content security policy lets a page load nothing, and whose style, ``page.css``,
has a light and a dark theme. All values are escaped but for our own drawings.
"""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from engine import __version__


def page(template: Path, **values: Any) -> str:
    """A page from a template.

    In it, ``text_of(NAME)`` is the text of a script or style beside the template or here, and ``version`` is ours.
    """
    loader = FileSystemLoader([template.parent, Path(__file__).parent])
    environment = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}

    def text_of(name: str) -> Markup:
        return Markup(loader.get_source(environment, name)[0])

    return environment.get_template(template.name).render(text_of=text_of, version=__version__, **values)
