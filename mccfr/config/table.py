"""What all tables of a configuration are."""

import msgspec


class Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A TOML table: unknown keys are errors."""
