"""Exports: the average strategy, or the raw tables behind it, in the form that others can use."""

from mccfr.policy.export.formats import BY_HAND, FORMATS, LISTS, PROVENANCE, RAW, export

__all__ = ["BY_HAND", "FORMATS", "LISTS", "PROVENANCE", "RAW", "export"]
