"""Pools and worker processes that train by strata, in intervals."""
