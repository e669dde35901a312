"""Outcome sampling: the algorithm, and its kernels for two players' betting trees and for any tree."""
