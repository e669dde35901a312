"""Reports: a betting line on all flops as one HTML file."""
