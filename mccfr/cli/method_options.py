"""Options of `mccfr evaluate` that evaluation methods declare (`mccfr.evaluation.methods.options`)."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import rich_click as click

from mccfr.cli.options import Count, Duration, path_type

if TYPE_CHECKING:
    from mccfr.evaluation.methods.options import Declared


class EvaluateCommand(click.RichCommand):
    """A command with the options of all methods before the last two of its own, --json and --help.

    Methods are imported when it is asked for them: other commands start without.
    """

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """All of its options."""
        own = super().get_params(ctx)
        return [*own[:-2], *_method_options(), *own[-2:]]


def taken_by_methods(options: dict[str, Any]) -> dict[str, Any]:
    """Of what a command was given, the options of methods, by their keywords."""
    from mccfr.evaluation.methods.registry import options_of_all

    return {name: options[name] for name in options_of_all()}


def name_responder_abstraction(target: Path, method: str, options: dict[str, Any]) -> None:
    """Of a policy, which brings its own, `--abstraction` is the responder's; changes `options` in place."""
    from mccfr.policy import is_policy

    if method == "trained-br" and options["responder_abstraction"] is None and is_policy(target):
        options["responder_abstraction"], options["abstraction"] = options["abstraction"], None


def _method_options() -> list[click.Parameter]:
    from mccfr.evaluation.methods.registry import options_of_all

    return [
        click.Option([name, each.flag], type=_type(each), metavar=each.option.metavar, help=each.option.help)
        for name, each in options_of_all().items()
    ]


def _type(declared: "Declared") -> click.ParamType[Any]:
    """What the command line reads a value by; numbers that are no whole ones are lengths of time."""
    option = declared.option
    if declared.type is int:
        bounded = option.least is not None or option.most is not None
        return click.IntRange(option.least, option.most) if bounded else Count()
    return {Path: path_type, float: Duration(), str: click.STRING}[declared.type]
