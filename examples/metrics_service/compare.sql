-- SPDX-License-Identifier: Apache-2.0
-- Each run beside the one called "none": what takes longer, and how much that is in all.  First callbacks, then
-- spans, of which busy_ms is what they had of the loop.  For the folder that run.sh has filled:
--
--	dial9 query DIR <compare.sql
WITH folders AS (SELECT process, substr(folder, 1, length(folder) - length(boot_id) - 1) AS path FROM processes),
sides AS (SELECT process, replace(path, rtrim(path, replace(path, '/', '')), '') AS side FROM folders),
sums AS (SELECT side, name, count(*) AS calls, avg(ms) AS ms FROM calls JOIN sides USING (process) GROUP BY side, name),
changes AS (
	SELECT bad.side, bad.name AS callback, bad.calls, good.ms AS none_ms, bad.ms,
		bad.calls * (bad.ms - ifnull(good.ms, 0)) AS more_ms
	FROM sums bad LEFT JOIN sums good ON good.side = 'none' AND good.name = bad.name WHERE bad.side <> 'none'),
ranked AS (SELECT *, row_number() OVER (PARTITION BY side ORDER BY more_ms DESC) AS rank FROM changes)
SELECT side AS run, callback, calls, round(none_ms, 3) AS none_ms, round(ms, 3) AS ms, round(more_ms) AS more_ms
FROM ranked WHERE rank <= 3 ORDER BY side, rank;

WITH folders AS (SELECT process, substr(folder, 1, length(folder) - length(boot_id) - 1) AS path FROM processes),
sides AS (SELECT process, replace(path, rtrim(path, replace(path, '/', '')), '') AS side FROM folders),
sums AS (
	SELECT side, name, count(*) AS spans, avg((last_ns - first_ns) / 1e6) AS ms, avg(active_ns / 1e6) AS busy_ms
	FROM spans JOIN sides USING (process) WHERE NOT callback GROUP BY side, name),
changes AS (
	SELECT bad.side, bad.name AS span, bad.spans, good.ms AS none_ms, bad.ms, good.busy_ms AS none_busy_ms,
		bad.busy_ms, bad.spans * (bad.ms - ifnull(good.ms, 0)) AS more_ms
	FROM sums bad LEFT JOIN sums good ON good.side = 'none' AND good.name = bad.name WHERE bad.side <> 'none'),
ranked AS (SELECT *, row_number() OVER (PARTITION BY side ORDER BY more_ms DESC) AS rank FROM changes)
SELECT side AS run, span, spans, round(none_ms, 3) AS none_ms, round(ms, 3) AS ms, round(none_busy_ms, 3) AS none_busy_ms,
	round(busy_ms, 3) AS busy_ms, round(more_ms) AS more_ms
FROM ranked WHERE rank <= 6 ORDER BY side, rank;
