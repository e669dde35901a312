"""Deep CFR and Single Deep CFR, the algorithm `deep-cfr`."""
