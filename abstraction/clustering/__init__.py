"""Clustering of hands into buckets, with nothing known of cards: arrays of points and weights in, labels out.

points: duplicates merged, checks · seeding: k-means++ · kmeans: Lloyd's iteration, restartable · two_level: very many
buckets · nested: buckets inside buckets · emd: histograms under the earth mover's distance · potential: distributions
over next-street buckets · percentiles: buckets of one number · quality: what came out.
"""
