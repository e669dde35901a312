"""Evaluation of strategies: values, best responses, exploitability and matches."""
