"""Exports: the average strategy, or the raw tables behind it, in the form that others can use."""

from mccfr.policy.export.formats import FORMATS, LISTS, PROVENANCE, RAW, export

__all__ = ["FORMATS", "LISTS", "PROVENANCE", "RAW", "export"]
