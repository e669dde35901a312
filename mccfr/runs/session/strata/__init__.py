"""Pools and worker processes that train by strata: groups of flops with buckets of their own."""
