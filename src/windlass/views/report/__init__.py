"""The report of a run: gathered from its facts as one value, then told as a page or as Markdown.

Pure: what git and the clock say comes in as values.
"""

from windlass.views.report.gather import compared, report_of
from windlass.views.report.markdown import markdown
from windlass.views.report.model import Report
from windlass.views.report.page import page

__all__ = ["Report", "compared", "markdown", "page", "report_of"]
