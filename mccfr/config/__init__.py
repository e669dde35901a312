"""Configuration of a run: its TOML tables as structs, which are parsed and validated."""
