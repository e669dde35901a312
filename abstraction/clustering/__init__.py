"""Clustering of weighted points into buckets, without knowledge of cards.

points       merges duplicates
metric       distances, and histograms under the earth mover's distance
seeding      k-means++
kmeans       Lloyd's iteration, resumable
two_level    very many buckets, and buckets within parents
percentiles  buckets of one number
"""
