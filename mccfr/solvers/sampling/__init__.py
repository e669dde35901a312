"""External and outcome sampling, each with a kernel for betting trees and one for any game tree."""
