"""Trains one run on several machines: each trains some groups of flops, called strata."""
