"""Clustering of weighted points into buckets, without knowledge of cards.

points       merges duplicates
metric       distances, and histograms under the earth mover's distance
seeding      k-means++
kmeans       Lloyd's iteration, resumable
two_level    very many buckets, and buckets that must lie within given groups of points
percentiles  buckets of points with one coordinate
"""
