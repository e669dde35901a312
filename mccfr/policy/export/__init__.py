"""Exports the average strategy or the tables of a run in six formats, from CSV to OpenSpiel."""

from mccfr.policy.export.export_formats import BY_HAND, FORMATS, LISTS, PROVENANCE, RAW, export

__all__ = ["BY_HAND", "FORMATS", "LISTS", "PROVENANCE", "RAW", "export"]
