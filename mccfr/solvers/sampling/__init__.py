"""External and outcome sampling, each with a kernel for betting trees and one for trees of any kind."""
