"""The Python interface: games, solvers, runs in directories, evaluations, saved strategies.

It calls the same functions as the commands.  `import mccfr` offers its public names; docs/api.md describes them.
"""
