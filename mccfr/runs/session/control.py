"""Layout of the shared int64 cells by which the coordinator and the workers communicate.

The coordinator is the main process of training; it gives orders such as "train" and "pause". The cells are a table with
COLUMNS columns: row 0 is the coordinator's, row 1+w worker w's. Each process writes only its own row, and each cell is
read and written atomically. A worker publishes its counters before it acknowledges an order, so the counters of a
paused worker are consistent.
"""

COLUMNS = 16

# Row 0
COMMAND, EPOCH, STOP_NODES, STOP_ITERATIONS, BASE_NODES, BASE_ITERATIONS, INTERVAL_SCALE, FRAME, BLOCK = range(9)
RUN, PAUSE, QUIT = 1, 2, 3
"""COMMAND: train until the run's totals reach STOP_NODES or STOP_ITERATIONS; pause; end. Each order has a new EPOCH.

With strata, RUN trains one interval. BASE_NODES is the node count at the barrier before it, and INTERVAL_SCALE a
float64 stored as bits. With an out-of-core schedule, BLOCK is the block to train, in frame FRAME.
"""

# Rows of workers
RESTING_SINCE, ITERATIONS, NODES, BUSY_NANOSECONDS, RNG, PROGRESS, LONGEST_BATCH = 0, 1, 2, 3, 4, 9, 10
COMPILING = 13
"""* RESTING_SINCE: epoch of the last order that the worker has carried out; it now pauses.
* RNG: four cells of 64 bits.
* PROGRESS: monotonic clock in nanoseconds at the last end of a batch or look at the orders; 0 before the first.
* BUSY_NANOSECONDS: time spent on training in this session; not used with strata.
* LONGEST_BATCH: duration of the longest batch in this session, in nanoseconds; with strata, of a stratum's training.
* COMPILING: estimated seconds of the compilation in progress; 0: none.
"""

ENDS = 12
"""Worker that discounts the tables: number of period ends it has processed."""

OVERFLOW = 11
"""Worker that trains strata: 1 if a change of the first street did not fit in 64 bits."""

# Rows of strata, after those of the workers; with ITERATIONS, NODES and RNG as above.
QUOTA = 11
"""Iterations in the present interval."""
