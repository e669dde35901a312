"""The Python interface: games, solvers in this process, runs in directories, evaluations, policies.

It calls the same functions as the commands.  `import mccfr` offers its public names; docs/api.md describes them.
"""
