/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "report/columns.h"
#include "report/report_json_values.h"
#include "text/units.h"

void d9__report_json_wall(struct d9__json *json, const char *key, const struct d9__analysis *a,
		   uint64_t ns)
{
	struct d9__units wall = d9__units_wall(d9__analysis_wall_ns(a, ns));

	d9__json_string(json, key, wall.text[0] ? wall.text : NULL);
}

void d9__report_json_moment(struct d9__json *json, const struct d9__analysis *a, uint64_t ns)
{
	uint64_t start_ns = d9__analysis_start_ns(a);

	d9__json_u64(json, "time_ns", ns);
	d9__json_i64(json, "offset_ns", (int64_t)(ns - start_ns));
	d9__report_json_wall(json, "wall", a, ns);
}

void d9__report_json_quantiles(struct d9__json *json, const struct d9__histogram *h)
{
	struct d9__quantiles quantiles = d9__quantiles_of(h);

	d9__columns_json(json, d9__quantile_columns, NULL, &quantiles);
}

void d9__report_json_callback_name(struct d9__json *json, const char *key,
			    const struct d9__callback *callback)
{
	const char *name;
	size_t len;

	if (!callback) {
		d9__json_null(json, key);
		return;
	}
	name = d9__callback_name(callback, &len);
	d9__json_text(json, key, name, len);
}

const char *d9__coverage_name(enum d9__coverage coverage)
{
	static const char *const names[] = { "full", "partial", "none" };

	return names[coverage];
}

void d9__report_json_coverage(struct d9__json *json, const char *key, const struct d9__analysis *a,
		       const char *capability)
{
	d9__json_string(json, key,
			d9__coverage_name(d9__metadata_coverage(&a->metadata, capability)));
}

void d9__report_json_recorded(struct d9__json *json, const struct d9__analysis *a, const char *key)
{
	d9__report_json_coverage(json, "recorded", a, key);
}
