"""External and outcome sampling, each over packed betting trees and over general records."""
