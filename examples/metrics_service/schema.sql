-- SPDX-License-Identifier: Apache-2.0
-- What the metrics service keeps: every sample, and one row for each metric with its totals.
DROP TABLE IF EXISTS samples, totals;
CREATE TABLE samples (
	id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	name text NOT NULL,
	value double precision NOT NULL,
	stored timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX ON samples (name, id);
CREATE TABLE totals (
	name text PRIMARY KEY,
	samples bigint NOT NULL,
	sum double precision NOT NULL
);
