"""Run configuration: its tables as structs, parsing from TOML, and validation."""
