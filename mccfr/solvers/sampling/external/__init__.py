"""External sampling: the algorithm, and its kernels for betting trees and for trees of any kind."""
