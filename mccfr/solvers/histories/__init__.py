"""CFR and best responses over explicit histories, without sampling."""
