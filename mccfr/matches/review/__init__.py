"""Reviews played hands by a policy: `action_costs` for a decision, `hand_review` for a hand."""
