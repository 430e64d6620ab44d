"""The site that ``make docs`` builds by Sphinx: the pages of this project, and a reference of the package ``keima``.

Pages are Markdown as it is, named as in the project, so links between them work here and there. The table of contents
is that of docs/README.md.
"""

import posixpath
import pydoc
import re
import shutil
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy.typing
from docutils import nodes
from pygments.lexers.special import TextLexer
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import Config, GoogleDocstring
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.nodes import make_refnode
from sphinx.util.typing import stringify_annotation

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

T = TypeVar("T")


class NDArray(Generic[T]):
    """Stands for numpy's alias, which signatures would write out whole."""


NDArray.__module__ = "numpy.typing"
numpy.typing.NDArray = NDArray

import keima  # noqa: E402
from engine.config.declaration import help_text  # noqa: E402

project, release = "Keima", keima.__version__
root_doc = "README"
include_patterns = ["*.md", "docs/**.md", "docs/**.ipynb", "weights/*.md"]
exclude_patterns = [path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in ("docs", "weights")]
extensions = ["myst_nb", "sphinx.ext.autodoc"]
nitpicky = True

myst_heading_anchors = 4
nb_execution_mode = "off"  # tests run the notebooks, which keep their outputs

autodoc_default_options = {"members": True}
autodoc_member_order = "bysource"
autoclass_content = "both"  # the docstring of __init__ below that of its class
autodoc_type_aliases = {name: f"keima.{name}" for name in keima.__all__ if name.endswith("Like")}  # where overloads are
python_maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"Keima {release}"
# Search results with their text read other pages, which browsers deny a page that was opened as a file.
html_show_search_summary = tags.has("web")  # noqa: F821
html_show_sphinx = html_show_copyright = html_copy_source = False
highlight_language = "none"  # of blocks that name no language: commands and transcripts

DOCSTRINGS = Config(
    napoleon_use_param=False,  # a field may have several names
    napoleon_use_rtype=False,
    napoleon_custom_sections=["Threads", "Source"],
)
BELOW = {"CONTRIBUTING": "CHANGELOG", "docs/networks": "weights/*", "docs/python": "docs/examples/*"}
"""Pages below a page, beside those in the folder of a README"""
ALIASES = {stringify_annotation(getattr(keima, name), "smart"): name for name in autodoc_type_aliases}


def add_contents(app: Sphinx, page: str, source: list[str]) -> None:
    """Give a page the table of contents of the pages below it."""
    if page == root_doc:
        text = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
        source[0] += contents(["/docs/README"])
        for section in re.split(r"^## ", text, flags=re.M)[1:]:
            links = re.findall(r"\]\(([^)\s#]+)\.(?:md|ipynb)\)", section)
            pages = [posixpath.normpath(posixpath.join("/docs", link)) for link in links]
            source[0] += contents(pages, f":caption: {section.splitlines()[0]}")
    elif page.endswith("/README") and page != "docs/README":
        source[0] += contents(["*"])
    elif page in BELOW:
        source[0] += contents(["/" + BELOW[page]])


def contents(pages: list[str], *options: str) -> str:
    """A table of contents for the sidebar alone."""
    return "\n".join(["\n\n```{toctree}", ":hidden:", ":glob:", *options, "", *pages, "```\n"])


def read_docstring(app: Sphinx, what: str, name: str, of: object, options: object, lines: list[str]) -> None:
    """Read the sections of a docstring (``Args:``, ``Returns:``); find that of data, and the help of options.

    Not by Napoleon's own hook, which takes what stands before the first colon of a field's docstring for its type.
    """
    if what == "data":
        lines[:] = docstring_of(name.removeprefix("keima."))
    elif what == "class" and is_dataclass(of):
        lines += ["", *(f"* ``{item.name}``: {help_text(item)}" for item in fields(of) if "help" in item.metadata)]
    lines[:] = GoogleDocstring(lines, DOCSTRINGS, app, "object", name, of, options).lines()


def docstring_of(name: str) -> list[str]:
    """The docstring under an assignment in a module of the package, which Python does not keep."""
    modules = [module for module in sys.modules if module.startswith("keima.")]
    found = [ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name)) for module in modules]
    return next((lines for lines in found if lines), [])


def name_aliases(
    app: Sphinx, what: str, name: str, of: object, options: object, signature: str | None, returns: str | None
) -> tuple[str | None, str | None]:
    """Write what is accepted in place of a type by its name, such as ``MoveLike``."""
    for whole, alias in ALIASES.items():
        signature = signature and signature.replace(whole, f"~keima.{alias}")
    return signature, returns


def resolve(app: Sphinx, env: BuildEnvironment, node: pending_xref, text: nodes.TextElement) -> nodes.Node | None:
    """Find what a docstring or signature names: an alias of the package, or what is not on the site but exists."""
    target = node.get("reftarget", "")
    found = env.domains.python_domain.objects.get(target)
    if found is not None:
        return make_refnode(app.builder, node["refdoc"], found.docname, found.node_id, text)
    return text if node.get("refdomain") == "py" and exists(target) else None


def exists(target: str) -> bool:
    """Whether a name is one of Python, or one that a module of the package imports for type checkers alone."""
    for_types = re.compile(rf"^ +from [\w.]+ import .*\b{re.escape(target)}\b", re.M)
    sources = (path.read_text(encoding="utf-8") for path in (ROOT / "keima").glob("*.py"))
    return pydoc.locate(target) is not None or any(for_types.search(source) for source in sources)


def copy_index(app: Sphinx, error: Exception | None) -> None:
    """Web servers show index.html where a folder is asked for."""
    if error is None and app.builder.name == "html":
        shutil.copyfile(app.outdir / "README.html", app.outdir / "index.html")


def setup(app: Sphinx) -> None:
    """Called by Sphinx."""
    for language in ("gtp", "analysis"):
        app.add_lexer(language, TextLexer)
    app.connect("source-read", add_contents)
    app.connect("autodoc-process-docstring", read_docstring)
    app.connect("autodoc-process-signature", name_aliases)
    app.connect("missing-reference", resolve)
    app.connect("build-finished", copy_index)
