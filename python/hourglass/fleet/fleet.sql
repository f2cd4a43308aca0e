-- A measured fleet for DuckDB. The tables nodes, missing, causes and gaps are there; times are nanoseconds.
--   nodes   node, host, kernel, hourglass, cpus, elapsed_ns, threads, max_gap_ns
--   missing node, reason
--   causes  node, cause, count, total_ns, max_ns
--   gaps    node, thread, cpu, cause, seen, start_ns, end_ns, length_ns

-- What each cause takes of each node's CPUs.
CREATE VIEW shares AS
SELECT node, cause, total_ns / (elapsed_ns * threads) AS share, count, max_ns
FROM causes JOIN nodes USING (node);

-- The longest gap of each node, and where it was.
CREATE VIEW worst AS
SELECT node, arg_max(cause, length_ns) AS cause, arg_max(cpu, length_ns) AS cpu, arg_max(start_ns, length_ns) AS start_ns,
       max(length_ns) AS length_ns
FROM gaps GROUP BY node;

-- Gaps in powers of two: these add over nodes, percentiles do not.
CREATE VIEW histogram AS
SELECT node, cause, CAST(2 AS BIGINT) ** CAST(floor(log2(length_ns)) AS BIGINT) AS lo_ns, count(*) AS count
FROM gaps WHERE length_ns > 0 GROUP BY ALL;

-- Every node, the missing ones too: nothing is known of these, so that theirs is null and not 0.
CREATE VIEW everyone AS
SELECT node, max_gap_ns, NULL AS reason FROM nodes
UNION ALL SELECT node, NULL, reason FROM missing;
