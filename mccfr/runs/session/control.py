"""The cells through which the coordinator and the workers of a run talk.

Row 0 is the coordinator's, row 1+w worker w's; each side writes only its own, and each cell is read and written whole.
A worker publishes its counters before it acknowledges, so what the coordinator reads of a paused worker is consistent.
"""

COLUMNS = 16

# Row 0
COMMAND, EPOCH, STOP_NODES, STOP_ITERATIONS, BASE_NODES, BASE_ITERATIONS, INTERVAL_SCALE, FRAME, BLOCK = range(9)
RUN, PAUSE, QUIT = 1, 2, 3
"""COMMAND: train until the run's totals reach STOP_NODES or STOP_ITERATIONS; rest; end.  Each order has a new EPOCH.
With strata RUN is one interval: BASE_NODES are those at its barrier, INTERVAL_SCALE a float64 in a cell's bits, and
where strata are in turn BLOCK is the one that is trained, in frame FRAME."""

# Rows of workers
RESTING_SINCE, ITERATIONS, NODES, BUSY_NANOSECONDS, RNG, WEIGHT, PROGRESS, LONGEST_BATCH = 0, 1, 2, 3, 4, 8, 9, 10
"""RESTING_SINCE: the epoch whose order the worker has carried out, and now rests; RNG: four cells of 64 bits; WEIGHT:
total weight of the iterations of this session, a float64 in the bits of its cell; PROGRESS: nanoseconds of the
monotonic clock when it last ended a batch or looked for orders, 0 before the first time; LONGEST_BATCH: nanoseconds."""

ENDS = 12
"""Of the worker that sweeps the tables: the period ends for which it has."""

OVERFLOW = 11
"""Of a worker that trains strata: 1 where a change of the first street did not fit into 64 bits."""

# Rows of strata, after those of workers; ITERATIONS, NODES and RNG as there
QUOTA = 11
"""Iterations of the present interval."""
