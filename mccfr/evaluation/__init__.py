"""How good a strategy is: value and exploitability."""
