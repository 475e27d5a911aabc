"""The documentation site: ``make docs`` builds it from this folder into ``site/``."""

import sys
from importlib.metadata import version as version_of
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

import freshness  # noqa: E402

project = "orthocal"
author = "The orthocal developers"
copyright = "The orthocal developers, MIT licence"
version = release = version_of("orthocal")

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    # ours, in _ext
    "freshness",
    "house_docstrings",
    "repository_pages",
    "reference_pages",
    "llms_file",
]
exclude_patterns = ["_ext", "_templates", "gallery", "images", "**.ipynb_checkpoints", "generated/gallery/*.ipynb"]
templates_path = ["_templates"]
# functions in sphinx_gallery_conf are not compared between builds
suppress_warnings = ["config.cache"]

# Markdown: anchors of titles as on GitHub, so that one link works in both places
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 4

# Notebooks are stored without outputs and executed here; a cell that fails, fails the build. The cache holds for one
# state of the package and of the notebooks' data: what was executed with older code is executed again.
nb_execution_mode = "cache"
nb_execution_cache_path = str(freshness.BUILD / f"notebooks-{freshness.digest()[:12]}")
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True

sphinx_gallery_conf = {
    "examples_dirs": ["gallery"],
    "gallery_dirs": ["generated/gallery"],
    "filename_pattern": r"plot_.*\.py$",
    "abort_on_example_error": True,
    "run_stale_examples": freshness.changed(),
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "download_all_examples": False,
    "plot_gallery": "True",
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
}

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_use_unqualified_type_names = True
autodoc_class_signature = "mixed"
maximum_signature_line_length = 88
napoleon_google_docstring = False
napoleon_use_rtype = False
napoleon_use_ivar = True
napoleon_use_param = False
napoleon_preprocess_types = False
default_role = "code"
add_module_names = False

html_theme = "furo"
html_title = f"orthocal {version}"
html_static_path = ["_static"]
html_css_files = ["orthocal.css"]
html_extra_path: list[str] = []
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "navigation_with_keys": True,
    "light_css_variables": {"color-brand-primary": "#0b5cad", "color-brand-content": "#0b5cad"},
    "dark_css_variables": {"color-brand-primary": "#6cb2ff", "color-brand-content": "#6cb2ff"},
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
