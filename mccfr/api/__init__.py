"""The Python interface: games, solvers in this process, runs in directories, evaluations and policies.

Nothing is done here that commands do not do by the same functions: games come from the catalogue, algorithms from the
registry, runs from `mccfr.runs.session.start`.  `import mccfr` offers what is public; docs/api.md describes it.
"""
