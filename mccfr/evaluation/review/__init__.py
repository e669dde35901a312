"""What decisions of hands that were played cost against a policy: `costs` of one decision, `hands` of a whole hand."""
