"""Pools that train by strata: what a session does with intervals, and a worker process with its strata."""
