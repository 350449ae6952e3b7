"""Sphinx configuration. The site is built without network: no intersphinx, MathJax from a wheel."""

import importlib.util
import re
import shutil
import sys
from importlib.metadata import version as installed_version
from pathlib import Path

from sphinx import addnodes
from sphinx.application import Sphinx

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS))  # the gallery imports the order of its scripts
sys.path.insert(0, str(DOCS.parent / "tests" / "helpers"))

from public_api import DESCRIBED_WITH  # noqa: E402

project = "setwise"
author = "The setwise developers"
copyright = "2026, The setwise developers"
version = release = installed_version("setwise")

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "myst_parser",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py", "gallery/**/*.md5"]
nitpicky = True
# References to other projects have no target, because there is no intersphinx.
_OTHERS = "numpy|np|scipy|sklearn|matplotlib|torch|dask|distributed|collections"
nitpick_ignore_regex = [("py:.*", rf"({_OTHERS})\b.*")]

html_theme = "pydata_sphinx_theme"
html_title = f"setwise {release}"
html_theme_options = {
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],  # the navigation bar has no space for a search field
    "show_prev_next": False,
}
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["setwise.css"]
html_js_files = ["copy.js"]

# Docstrings write the size of a set as |A|, which Sphinx would read as a substitution. Here the
# substitutions are defined, as formulas.
rst_prolog = "\n".join(f".. |{it}| replace:: :math:`|{it}|`" for it in ("A", "I", "P", "V - P"))

# Types are described in the docstrings.
autodoc_typehints = "none"
autosummary_generate = True
autosummary_imported_members = True  # public names are re-exported by the folders' __init__
autosummary_ignore_module_all = False
# For the templates: the classes without a public name, by the name whose page describes them.
autosummary_context = {"described_with": DESCRIBED_WITH}
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # autodoc documents them in full, on the page of their class

myst_enable_extensions = ["dollarmath", "amsmath", "colon_fence"]
myst_heading_anchors = 3

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "gallery_order.PhotographsFirst",
    # The script starts processes that import it, which the gallery does not support.
    "ignore_pattern": r"torch_distributed\.py$",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_signature": False,
    "remove_config_comments": True,
    "capture_repr": (),  # show what a script prints, but not the value of its last line
    "min_reported_time": 3600,  # hide running times, which depend on the machine
    "write_computation_times": False,
}

# Copy only this script and its fonts, of the 24 MB in the wheel.
mathjax_path = "mathjax/tex-chtml-full.js"
mathjax3_config = {"chtml": {"displayAlign": "left"}}


def copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    spec = importlib.util.find_spec("sphinx-mathjax-offline")
    if error is not None or spec is None or spec.origin is None:
        return
    source = Path(spec.origin).parent / "static" / "mathjax"
    target = Path(app.outdir) / "_static" / "mathjax"
    fonts = Path("output") / "chtml" / "fonts"
    target.mkdir(parents=True, exist_ok=True)
    shutil.copy(source / "tex-chtml-full.js", target)
    shutil.copytree(source / fonts, target / fonts, dirs_exist_ok=True)


def typeset_norms(app: Sphinx, what: str, name: str, it: object, opts: object, doc: list) -> None:
    """Write "1/2 |w|^2" as a formula, because no substitution can end in "^2"."""
    doc[:] = [re.sub(r"1/2 (\|[wW]\|\^2)", r":math:`\\tfrac12 \1`", line) for line in doc]


def skip_foreign(
    app: Sphinx, what: str, name: str, it: object, skip: bool, opts: object
) -> bool | None:
    """Skip members inherited from scikit-learn and torch, which their own references document."""
    home = str(getattr(it, "__module__", ""))
    return True if home.startswith(("sklearn.", "torch.", "dask.", "distributed.")) else None


def hide_private_modules(app: Sphinx, domain: str, objtype: str, content: addnodes.Node) -> None:
    """Show a class without a public name under its name alone."""
    for signature in content.parent.findall(addnodes.desc_signature):
        if "._" in signature.get("module", ""):
            for prefix in list(signature.findall(addnodes.desc_addname)):
                prefix.parent.remove(prefix)


def setup(app: Sphinx) -> None:
    app.connect("object-description-transform", hide_private_modules)
    app.connect("autodoc-process-docstring", typeset_norms)
    app.connect("autodoc-skip-member", skip_foreign)
    app.connect("build-finished", copy_mathjax)
