"""Style and script texts of a report, partly shared with the page of `mccfr view`.

Scripts insert texts as text, never as markup, and load nothing.
"""

from importlib.resources import files


def _static(*names: str) -> str:
    return "\n".join(files("mccfr.report").joinpath("static", name).read_text("utf-8") for name in names)


def style() -> str:
    """Return all style sheets of a report as one text."""
    return _static("strategy.css", "report.css")


def script(name: str = "report.js") -> str:
    """Return all scripts of a report as one text; `name` is its own script."""
    return _static("strategy.js", name)
