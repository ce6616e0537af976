/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <sys/wait.h>

#include <dial9/options.h>
#include <dial9/span.h>

#include "core/record/scratch.h"

static const struct d9_field fields[] = {
	{ "path", D9_FIELD_STRING, NULL, NULL },
	{ "method", D9_FIELD_POOLED_STRING, NULL, NULL },
	{ "bytes", D9_FIELD_VARINT, "bytes", NULL },
	{ "delta", D9_FIELD_I64, NULL, NULL },
	{ "ratio", D9_FIELD_F64, NULL, NULL },
	{ "cached", D9_FIELD_BOOL, NULL, NULL },
	{ "status", D9_FIELD_U16, NULL, NULL },
};
enum { REQUEST_LINE = __LINE__ + 2 };
static struct d9_span_site request =
	D9_SPAN_SITE_WITH(D9_SPAN_WARN, "http.server", "request", fields);
static struct d9_span_site plain = D9_SPAN_SITE(D9_SPAN_INFO, "", "plain");
static struct d9_span_site detail = D9_SPAN_SITE(D9_SPAN_DEBUG, "http", "detail");

/* The spans' events of a trace, in short. */
struct seen {
	unsigned enters, exits, closes, misuses;
	char name[256], unit[16];
	/* Of the latest close. */
	char attributes[512], target[32], level[16], span_name[32];
	uint64_t line, start_ns, first_ns, active_ns, end_ns, id, instance, parent;
	/* Of the latest enter and exit. */
	uint64_t bytes[2], tid;
	char path[2][300], method[2][32];
};

static void copy(char *to, size_t size, const struct d9_event *event, const char *field)
{
	const struct d9_value *value = d9_event_field(event, field);

	if (value && value->present)
		snprintf(to, size, "%.*s", (int)value->u.text.len, value->u.text.data);
	else
		snprintf(to, size, "-");
}

static void see_attributes(struct seen *seen, const struct d9_event *event)
{
	const struct d9_value *value = d9_event_field(event, "attributes");
	size_t used = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(value);
	seen->attributes[0] = '\0';
	for (size_t i = 0; i < 2 * value->u.string_map.n; i++) {
		const struct d9_text *text = &value->u.string_map.pairs[i];

		used += (size_t)snprintf(seen->attributes + used, sizeof(seen->attributes) - used,
					 "%.*s%s", (int)text->len, text->data, i % 2 ? ";" : "=");
	}
}

static void see_close(struct seen *seen, const struct d9_event *event)
{
	see_attributes(seen, event);
	copy(seen->target, sizeof(seen->target), event, "target");
	copy(seen->level, sizeof(seen->level), event, "level");
	copy(seen->span_name, sizeof(seen->span_name), event, "span_name");
	seen->id = d9_event_u64(event, "span_id", 0);
	seen->instance = d9_event_u64(event, "span_instance_id", 0);
	seen->line = d9_event_u64(event, "line", 0);
	seen->start_ns = d9_event_u64(event, "start_timestamp_ns", 0);
	seen->first_ns = d9_event_u64(event, "first_enter_timestamp_ns", 0);
	seen->active_ns = d9_event_u64(event, "active_ns", 0);
	seen->parent = d9_event_u64(event, "parent_span_instance_id", 0);
	seen->end_ns = event->timestamp_ns;
	seen->closes++;
}

static void see(void *arg, const struct d9_event *event)
{
	struct seen *seen = arg;
	int is_exit = event->kind == D9_EVENT_SPAN_EXIT;
	const char *unit;

	if (event->kind == D9_EVENT_SPAN_CLOSE)
		see_close(seen, event);
	seen->misuses += !strcmp(d9_event_name(event), "SpanMisuseEvent");
	if (event->kind != D9_EVENT_SPAN_ENTER && !is_exit)
		return;
	seen->enters += !is_exit;
	seen->exits += (unsigned)is_exit;
	if (!is_exit)
		snprintf(seen->name, sizeof(seen->name), "%s", d9_event_name(event));
	seen->tid = d9_event_u64(event, "tid", 0);
	seen->bytes[is_exit] = d9_event_u64(event, "bytes", UINT64_MAX);
	copy(seen->path[is_exit], sizeof(seen->path[0]), event, "path");
	copy(seen->method[is_exit], sizeof(seen->method[0]), event, "method");
	if (d9_schema_find(event->schema, "bytes") >= 0) {
		unit = d9_schema_annotation(event->schema,
					    (size_t)d9_schema_find(event->schema, "bytes"), "unit");
		snprintf(seen->unit, sizeof(seen->unit), "%s", unit ? unit : "-");
	}
}

static struct seen stop_and_see(struct d9_recorder *recorder)
{
	struct seen seen = { .enters = 0 };

	CU_ASSERT_EQUAL(d9_recorder_stop(recorder, 5000), 0);
	scratch_read(scratch_dir, false, see, &seen);
	return seen;
}

static void run(struct d9_span_site *site)
{
	D9_SPAN_SCOPE(site);
}

/* ---- fields ---- */

static void test_span_events_carry_names_ids_and_values(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	struct d9_span span;
	struct seen seen;
	char place[64];
	uint64_t id;

	snprintf(place, sizeof(place), "test_span_trace.c:%d", REQUEST_LINE);
	CU_ASSERT_EQUAL(D9_SPAN_CREATE(&span, &request, D9_SPAN_ROOT, "/index", "GET", d9_absent(),
				       -5, 0.25, true), 0);
	id = d9_span_id(&span);
	d9_span_enter(&span);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 2, 512u), 0);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 0, "/other/path"), 0);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 1, "POST"), 0);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 6, 404), 0);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 3, d9_absent()), 0);
	d9_span_exit(&span);
	d9_span_close(&span);
	seen = stop_and_see(recorder);

	CU_ASSERT(seen.enters == 1 && seen.exits == 1 && seen.closes == 1 && !seen.misuses);
	CU_ASSERT_PTR_NOT_NULL(strstr(seen.name, "SpanEnter:http.server::request:"));
	CU_ASSERT_PTR_NOT_NULL(strstr(seen.name, place));
	CU_ASSERT_STRING_EQUAL(seen.unit, "bytes");
	CU_ASSERT_EQUAL(seen.bytes[0], UINT64_MAX);
	CU_ASSERT_EQUAL(seen.bytes[1], 512);
	CU_ASSERT_STRING_EQUAL(seen.path[0], "/index");
	CU_ASSERT_STRING_EQUAL(seen.path[1], "/other/path");
	CU_ASSERT_STRING_EQUAL(seen.method[0], "GET");
	CU_ASSERT_STRING_EQUAL(seen.method[1], "POST");
	CU_ASSERT_STRING_EQUAL(seen.attributes,
			       "path=/other/path;method=POST;bytes=512;ratio=0.25;cached=true;"
			       "status=404;");
	CU_ASSERT(seen.id == id && seen.instance == id && !seen.parent);
	CU_ASSERT_STRING_EQUAL(seen.target, "http.server");
	CU_ASSERT_STRING_EQUAL(seen.level, "warn");
	CU_ASSERT_STRING_EQUAL(seen.span_name, "request");
	CU_ASSERT_EQUAL(seen.line, REQUEST_LINE);
	CU_ASSERT(seen.start_ns <= seen.first_ns && seen.first_ns <= seen.end_ns);
	CU_ASSERT(seen.active_ns <= seen.end_ns - seen.first_ns);
	CU_ASSERT_EQUAL(seen.tid, (uint64_t)gettid());
}

static void test_span_values_that_disagree_with_the_fields_are_refused(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	const struct d9_field odd_fields[] = { { "x", 99, NULL, NULL } };
	struct d9_span_site odd = D9_SPAN_SITE_WITH(D9_SPAN_INFO, "t", "odd", odd_fields);
	struct d9_span_site loud = D9_SPAN_SITE((enum d9_span_level)9, "t", "loud");
	struct d9_span_site nameless = D9_SPAN_SITE(D9_SPAN_INFO, "t", NULL);
	struct d9_span span;
	struct seen seen;

	CU_ASSERT_EQUAL(D9_SPAN_CREATE(&span, &plain, D9_SPAN_ROOT, 1), -EINVAL);
	CU_ASSERT_EQUAL(D9_SPAN_CREATE(&span, &request, D9_SPAN_ROOT, 5), -EINVAL);
	CU_ASSERT_EQUAL(d9_span_id(&span), 0);
	CU_ASSERT_EQUAL(d9_span_create(&span, &odd, D9_SPAN_ROOT, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(d9_span_create(&span, &loud, D9_SPAN_ROOT, NULL, 0), -EINVAL);
	CU_ASSERT_EQUAL(d9_span_site_register(&nameless), -EINVAL);
	CU_ASSERT_EQUAL(d9_span_create(&span, &request, D9_SPAN_ROOT, NULL, 0), 0);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 7, 1), -EINVAL);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 6, 70000), -EINVAL);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 6, 200), 0);
	d9_span_close(&span);
	seen = stop_and_see(recorder);

	CU_ASSERT_STRING_EQUAL(seen.attributes, "status=200;");
	CU_ASSERT_EQUAL(seen.closes, 1);
	CU_ASSERT_EQUAL(seen.first_ns, 0);
}

static void test_span_values_beyond_the_room_are_cut_and_left_out(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	struct d9_span span;
	struct seen seen;
	char longer[600];

	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CU_ASSERT_EQUAL(D9_SPAN_CREATE(&span, &request, D9_SPAN_ROOT, longer, "GET", 7), 0);
	d9_span_enter(&span);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 3, -1), -E2BIG);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 0, "short"), 0);
	CU_ASSERT_EQUAL(D9_SPAN_SET(&span, 3, -1), 0);
	d9_span_end(&span);
	seen = stop_and_see(recorder);

	/* A presence byte and a length; a byte for each of the six fields behind it. */
	CU_ASSERT_EQUAL(strlen(seen.path[0]), D9_SPAN_BYTES_MAX - 5 - 6);
	CU_ASSERT_STRING_EQUAL(seen.method[0], "-");
	CU_ASSERT_EQUAL(seen.bytes[0], UINT64_MAX);
	CU_ASSERT_STRING_EQUAL(seen.attributes, "path=short;delta=-1;");
}

static void test_span_names_and_types_are_written_again_in_each_chunk(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	struct seen seen;

	for (int i = 0; i < 3000; i++) {
		struct d9_span span;

		D9_SPAN_CREATE(&span, &request, D9_SPAN_ROOT, "/", "GET", (unsigned)i);
		d9_span_enter(&span);
		d9_span_end(&span);
		run(&plain);
	}
	seen = stop_and_see(recorder);

	CU_ASSERT(seen.enters == 6000 && seen.exits == 6000 && seen.closes == 6000);
	CU_ASSERT_STRING_EQUAL(seen.method[0], "-"); /* of plain */
}

/* ---- filter ---- */

/* How many of one span at info and one at debug are recorded. */
static unsigned spans_with_variable(const char *value)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	struct seen seen;

	setenv("DIAL9_SPAN_FILTER", value, 1);
	d9_options_set_environment(options, true);
	recorder = scratch_start(options);
	unsetenv("DIAL9_SPAN_FILTER");
	run(&plain);
	run(&detail);
	seen = stop_and_see(recorder);
	return seen.enters;
}

static void test_filter_of_the_options_is_in_force_and_the_environment_is_below_it(void)
{
	struct d9_options *options = scratch_options();
	struct d9_recorder *recorder;
	struct seen seen;

	CU_ASSERT_EQUAL(d9_options_set_span_filter(options, "loud"), -EINVAL);
	CU_ASSERT_EQUAL(d9_options_set_span_filter(options, "off,http=debug"), 0);
	recorder = scratch_start(options);
	run(&plain);
	run(&detail);
	seen = stop_and_see(recorder);
	CU_ASSERT(seen.enters == 1 && !strcmp(seen.span_name, "detail"));

	CU_ASSERT_EQUAL(spans_with_variable("debug"), 2);
	CU_ASSERT_EQUAL(spans_with_variable("nonsense"), 1);
}

/* ---- processes ---- */

static void test_span_before_start_and_after_stop_is_none(void)
{
	struct d9_recorder *recorder;
	struct d9_span span, later;
	struct seen seen;

	run(&plain);
	recorder = scratch_start(scratch_options());
	D9_SPAN_CREATE(&span, &request, D9_SPAN_ROOT, "/");
	d9_span_enter(&span);
	seen = stop_and_see(recorder);
	CU_ASSERT(seen.enters == 1 && seen.exits == 0);
	d9_span_exit(&span);
	d9_span_close(&span);
	run(&plain);
	CU_ASSERT_EQUAL(d9_span_create(&later, &plain, D9_SPAN_CURRENT, NULL, 0), 0);
	CU_ASSERT_EQUAL(d9_span_id(&later), 0);
	CU_ASSERT_EQUAL(d9_span_current(), 0);
}

static int child_of_fork(struct d9_span *inherited)
{
	struct d9_span own;

	if (d9_span_current())
		return 1;
	d9_span_enter(inherited);
	d9_span_end(inherited);
	/* Starts the child's recorder. */
	if (d9_span_create(&own, &plain, D9_SPAN_CURRENT, NULL, 0) || !d9_span_id(&own))
		return 2;
	d9_span_enter(&own);
	if (d9_span_current() != d9_span_id(&own))
		return 3;
	d9_span_end(&own);
	return d9_recorder_stop(d9_recorder_running(), 5000) ? 4 : 0;
}

#ifdef __SANITIZE_THREAD__
#define FORKS 0 /* TSan ends a forked child that starts a thread */
#else
#define FORKS 1
#endif

static void test_span_of_a_forked_child_is_in_the_childs_trace(void)
{
	struct d9_recorder *recorder = scratch_start(scratch_options());
	struct d9_span span;
	struct seen seen;
	int status = -1;
	pid_t child;

	D9_SPAN_CREATE(&span, &request, D9_SPAN_ROOT, "/");
	d9_span_enter(&span);
	child = FORKS ? fork() : -1;
	if (!child)
		_exit(child_of_fork(&span));
	d9_span_end(&span);
	if (FORKS) {
		CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
		CU_ASSERT_EQUAL(status, 0);
	}
	seen = stop_and_see(recorder);
	CU_ASSERT(seen.enters == 1 + FORKS && seen.exits == 1 + FORKS && seen.closes == 1 + FORKS);
	CU_ASSERT_EQUAL(seen.misuses, 0);
}

int main(void)
{
	static const CU_TestInfo tests[] = {
		{ "span before start and after stop is none",
		  test_span_before_start_and_after_stop_is_none },
		{ "span events carry names, ids and values",
		  test_span_events_carry_names_ids_and_values },
		{ "span values that disagree with the fields are refused",
		  test_span_values_that_disagree_with_the_fields_are_refused },
		{ "span values beyond the room are cut and left out",
		  test_span_values_beyond_the_room_are_cut_and_left_out },
		{ "span names and types are written again in each chunk",
		  test_span_names_and_types_are_written_again_in_each_chunk },
		{ "filter of the options is in force, and the environment is below it",
		  test_filter_of_the_options_is_in_force_and_the_environment_is_below_it },
		{ "span of a forked child is in the child's trace",
		  test_span_of_a_forked_child_is_in_the_childs_trace },
		CU_TEST_INFO_NULL,
	};
	int failed = d9_test_main("span_trace", tests);

	scratch_remove();
	return failed;
}
