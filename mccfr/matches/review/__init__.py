"""EV loss of decisions in played hands against a policy: `costs` for one decision, `hands` for a hand."""
