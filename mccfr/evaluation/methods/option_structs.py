"""Options of evaluation methods, for the command line, `[evaluation]` and records.

Each method has one frozen struct; a field is an option. The field's name is the keyword argument of `registry.measure`,
which evaluates a strategy. Its `encode_name` in msgspec is its name in `[evaluation]` and in records, if the option
exists there. It is also the name on the command line (with `-` for `_`), unless `Option.flag` gives another.
"""

from collections.abc import Iterable
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from mccfr.config.table_base import fields_of

if TYPE_CHECKING:  # kernels are imported when something is measured
    from mccfr.evaluation.samples import Effort


class Option(NamedTuple):
    """Command-line description of an option, part of its field's annotation.

    help         one line, which first names the methods that take it, unless all do
    metavar      placeholder of its value
    least, most  bounds of a whole number, which may be written 1e7; None: 0 and 10^18
    flag         name on the command line without `--`; None: the field's `encode_name`
    key          True if the option is also a key of the table `[evaluation]` of a configuration
    """

    help: str
    metavar: str | None = None
    least: int | None = None
    most: int | None = None
    flag: str | None = None
    key: bool = False


BOARDS = Option("Number of sampled boards; head-to-head: 1000.", least=2, key=True)
FROM = Option("sampled-br: first street of the best response; default: the last.", metavar="STREET")
FLOPS = Option("exact, whole hold'em: number of sampled flops, for an estimate; default: all 1,755.", least=8)
SEED = Option("Seed of the samples; default: 0.", least=0)
RESOLVE = Option(
    "lbr, sampled-br, head-to-head: re-solve the policy's hands from this street on.",
    metavar="STREET[:METHOD[:ITERATIONS]]",
)
WORKERS = Option("Number of processes of a sampled evaluation.", least=1, most=1024)
BUDGET = Option("Sample for this long instead of a number of samples: 90s, 3m.", flag="budget")
KEEP = Option("File of finished samples; the same command continues from it.")
"""Options of several methods."""


class MethodOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of the options of an evaluation method; used as it is if a method has no options.

    A field without an `Option` in its annotation can only be set from Python, not on the command line.
    """


class BoardOptions(MethodOptions, frozen=True):
    """Options of a method that samples boards: their number, and the seed."""

    boards: Annotated[int, BOARDS] = 1000
    seed: Annotated[int, SEED] = 0


class SampledOptions(MethodOptions, frozen=True):
    """Options of a method that evaluates samples: seed, workers, time budget and journal file."""

    seed: Annotated[int, SEED] = 0
    workers: Annotated[int, WORKERS] = 1
    budget_seconds: Annotated[float | None, BUDGET] = None
    keep: Annotated[Path | None, KEEP] = None

    @property
    def effort(self) -> "Effort":
        """The same options as `Effort`: number of processes, time budget and journal file."""
        from mccfr.evaluation.samples import Effort

        return Effort(self.workers, self.budget_seconds, self.keep)


class Declared(NamedTuple):
    """An option of evaluation methods: its name, type and description for the command line.

    name    name of the option in the table `[evaluation]` of a configuration, and in records
    type    Python type of its value
    option  its description for the command line
    """

    name: str
    type: Any
    option: Option

    @property
    def flag(self) -> str:
        """Name on the command line, with `--`."""
        return f"--{(self.option.flag or self.name).replace('_', '-')}"


def declared(*structs: type[MethodOptions]) -> dict[str, Declared]:
    """Return {field name: `Declared`} of the options of some classes, each field once.

    Inherited options come last.

    structs  classes derived from `MethodOptions`
    """
    options: dict[str, Declared] = {}
    for struct in structs:
        own = struct.__annotations__
        for field in sorted(fields_of(struct), key=lambda field: field.name not in own):
            option = next((each for each in getattr(field.type, "__metadata__", ()) if isinstance(each, Option)), None)
            if option is not None:
                value_type = field.type.__origin__
                (value_type,) = [
                    each for each in getattr(value_type, "__args__", (value_type,)) if each is not NoneType
                ]
                options.pop(field.name, None)
                options[field.name] = Declared(field.encode_name, value_type, option)
    return options


def flags(names: Iterable[str]) -> str:
    """Return the command-line names of options in one text, separated by commas.

    names  field names of the options: "from_street", "budget_seconds" give "--from, --budget"
    """
    short = [name.removesuffix("_street").removesuffix("_seconds").replace("_", "-") for name in names]
    return ", ".join(f"--{name}" for name in short)
