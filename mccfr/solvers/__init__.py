"""Training algorithms; `registry` maps the names in `[solver]` to them."""
