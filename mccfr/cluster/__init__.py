"""Trains one run on several machines: shares out strata, and adds up the first street at barriers."""
