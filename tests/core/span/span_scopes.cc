// SPDX-License-Identifier: Apache-2.0
// Spans as C++ objects: they end where their objects do, an exception included.  Built as C++11.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include <dial9/options.h>
#include <dial9/reader.h>
#include <dial9/recorder.h>
#include <dial9/span.h>

namespace {

const struct d9_field job_fields[] = {
	{ "name", D9_FIELD_STRING, nullptr, nullptr },
	{ "size", D9_FIELD_VARINT, "bytes", nullptr },
};
struct d9_span_site job = D9_SPAN_SITE_WITH(D9_SPAN_INFO, "test", "job", job_fields);
struct d9_span_site plain = D9_SPAN_SITE(D9_SPAN_INFO, "test", "plain");
struct d9_span_site unwanted = D9_SPAN_SITE(D9_SPAN_TRACE, "test", "unwanted");

void fail(const char *what)
{
	std::fprintf(stderr, "failed: %s\n", what);
	std::exit(1);
}

void check(bool ok, const char *what)
{
	if (!ok)
		fail(what);
}

void thrower(int depth)
{
	D9_SPAN_HERE(D9_SPAN_INFO, "test", "thrower");

	if (depth == 0)
		throw std::runtime_error("from the depth");
	thrower(depth - 1);
}

void an_exception_ends_all_spans_on_its_way()
{
	try {
		thrower(3);
	} catch (const std::runtime_error &) {
		check(d9_span_current() == 0, "nothing is entered behind the exception");
		return;
	}
	fail("the exception arrives");
}

void a_span_lives_as_long_as_its_object()
{
	dial9::span outer(job, "outer", 5u);
	uint64_t id = outer.id();

	check(id != 0 && d9_span_current() == 0, "created, not entered");
	for (int i = 0; i < 2; i++) {
		dial9::entered inside(outer);

		check(d9_span_current() == id, "inside");
		check(outer.set(1, 7) == 0, "a value is set");
	}
	check(d9_span_current() == 0, "left twice");
	dial9::span child(dial9::child_of(id), plain);
	check(child.id() != 0 && child.id() != id, "a child of its own");
	outer.close();
	check(outer.id() == 0, "closed before its object ends");
}

void a_scope_takes_values_and_is_the_parent_of_what_is_inside()
{
	std::string text("of a string");
	D9_SPAN_SCOPE_WITH(&job, text.c_str(), text.size());
	uint64_t id = d9_span_current();

	check(id != 0, "entered");
	{
		dial9::scope inner(plain);

		check(d9_span_current() == inner.id() && inner.id() != id, "inside the inner one");
	}
	check(d9_span_current() == id, "the outer one again");
}

void what_the_filter_leaves_out_is_nothing()
{
	dial9::scope none(unwanted);
	dial9::span neither(unwanted);

	check(none.id() == 0 && neither.id() == 0 && d9_span_current() == 0, "not recorded");
	D9_SPAN_SCOPE(&unwanted);
}

struct counts {
	unsigned enters, exits, closes, misuses, lost;
};

counts read(const char *dir)
{
	counts seen = { 0, 0, 0, 0, 0 };
	const struct d9_event *event;
	struct d9_reader *reader;

	check(d9_reader_new(&reader) == 0 && d9_reader_add(reader, dir) == 0, "a trace is there");
	while (d9_reader_next(reader, &event) == 1) {
		seen.enters += event->kind == D9_EVENT_SPAN_ENTER;
		seen.exits += event->kind == D9_EVENT_SPAN_EXIT;
		seen.closes += event->kind == D9_EVENT_SPAN_CLOSE;
		seen.misuses += event->kind == D9_EVENT_SPAN_MISUSE;
		seen.lost += event->kind == D9_EVENT_RECORDER_LOSS;
	}
	d9_reader_free(reader);
	return seen;
}

} // namespace

int main()
{
	const char *tmp = std::getenv("TMPDIR");
	std::string dir = std::string(tmp ? tmp : "/tmp") + "/d9-scopes-XXXXXX";
	struct d9_recorder *recorder;
	struct d9_options *options;
	std::string remove;
	counts seen;

	check(mkdtemp(&dir[0]) != nullptr, "a directory");
	remove = "rm -rf " + dir;
	check(d9_options_new(&options) == 0, "options");
	d9_options_set_environment(options, false);
	d9_options_set_trace_dir(options, dir.c_str());
	check(d9_recorder_start(options, &recorder) == 0, "a recorder");
	d9_options_free(options);
	an_exception_ends_all_spans_on_its_way();
	a_span_lives_as_long_as_its_object();
	a_scope_takes_values_and_is_the_parent_of_what_is_inside();
	what_the_filter_leaves_out_is_nothing();
	check(d9_recorder_stop(recorder, 5000) == 0, "it stops");

	seen = read(dir.c_str());
	std::system(remove.c_str());
	check(seen.enters == 4 + 2 + 2 && seen.exits == seen.enters, "enters and exits");
	check(seen.closes == 4 + 2 + 2, "closes");
	check(seen.misuses == 0 && seen.lost == 0, "no mistakes, no loss");
	return 0;
}
