"""Training algorithms, such as CFR and MCCFR; `registry` maps `solver.algorithm` to them."""
