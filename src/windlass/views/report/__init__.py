"""The report of a run: gathered from its facts as one value, then written as HTML or Markdown.

Pure: data from git and the clock are arguments. `windlass.views.report.page` writes the HTML;
it is not imported here, because only it needs jinja2.
"""

from windlass.views.report.gather import compared, diffed, report_of
from windlass.views.report.markdown import markdown
from windlass.views.report.model import Report

__all__ = ["Report", "compared", "diffed", "markdown", "report_of"]
