"""Clustering of weighted points into buckets, without knowledge of cards.

points       merges duplicates and checks input
seeding      k-means++
kmeans       Lloyd's iteration, resumable
two_level    very many buckets, and buckets within parents
emd          histograms under the earth mover's distance
potential    distributions over next-street buckets
percentiles  buckets of one number
quality      variance explained, adjusted Rand index
"""
