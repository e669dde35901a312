"""Sampled traversals: external and outcome sampling, over packed betting trees and over general records."""
