"""Style and script of a report: those that the page of `mccfr view` has as well, and its own, as one text each.

Scripts write text as text only, never as markup, and load nothing.
"""

from importlib.resources import files


def _static(*names: str) -> str:
    return "\n".join(files("mccfr.report").joinpath("static", name).read_text("utf-8") for name in names)


def style() -> str:
    """All style sheets of a report."""
    return _static("strategy.css", "report.css")


def script(name: str = "report.js") -> str:
    """All scripts of a report, `name` its own."""
    return _static("strategy.js", name)
