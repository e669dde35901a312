"""Run configuration: tables as structs, reading them from TOML, and what they may hold."""
