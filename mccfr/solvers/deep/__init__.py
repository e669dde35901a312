"""Deep CFR and Single Deep CFR: what the algorithm `deep-cfr` iterates with."""
