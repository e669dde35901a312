"""Adds the options that evaluation methods declare to `mccfr evaluate`.

`mccfr.evaluation.methods.option_structs` has the declarations.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mccfr.cli.shared_options import Count, Duration, path_type

if TYPE_CHECKING:
    from mccfr.evaluation.methods.option_structs import Declared


class EvaluateCommand(click.RichCommand):
    """Command with the options of all methods before the last two of its own, --json and --help.

    Methods are imported when the options are read, so that other commands start fast.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the command's own options and those of the methods."""
        own = super().get_params(ctx)
        return [*own[:-2], *_method_options(), *own[-2:]]


def method_options_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of methods among a command's options, by keyword."""
    from mccfr.evaluation.methods.registry import options_of_all

    return {name: options[name] for name in options_of_all()}


def _method_options() -> list[click.Parameter]:
    from mccfr.evaluation.methods.registry import options_of_all

    return [
        click.Option([name, each.flag], type=_type(each), metavar=each.option.metavar, help=each.option.help)
        for name, each in options_of_all().items()
    ]


def _type(declared: "Declared") -> click.ParamType[Any]:
    """Return click's type of a method's option; a float is a duration."""
    option = declared.option
    if declared.type is int:
        bounded = option.least is not None or option.most is not None
        return click.IntRange(option.least, option.most) if bounded else Count()
    return {Path: path_type, float: Duration(), str: click.STRING}[declared.type]
