#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names of functions in modules that come and go, that were loaded by relative paths, or that have no build-id.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >plugin.c <<'END_C'
static volatile int n;
void CALLBACK(int fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	n++;
}
END_C
# Loads the plugins one after the other, and calls the callback of each so often: ./host CALLS (PATH CALLBACK)...
cat >host.c <<'END_C'
#include <dlfcn.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>

static struct event_base *base;
static struct event *event;
static char **next;
static void *handle, *places[16];
static int calls, left, n_places;

static void load(void)
{
	handle = dlopen(next[0], RTLD_NOW);
	places[n_places] = handle ? dlsym(handle, next[1]) : NULL;
	if (!places[n_places]) {
		puts(dlerror());
		exit(99);
	}
	event = event_new(base, -1, 0, (event_callback_fn)places[n_places++], NULL);
	next += 2;
	left = calls;
}

static void swap(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what, (void)arg;
	if (left--) {
		event_active(event, EV_TIMEOUT, 0);
		return;
	}
	event_free(event);
	dlclose(handle);
	if (*next)
		load();
	else
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct timeval often = { 0, 1000 };

	(void)argc;
	calls = atoi(argv[1]);
	next = argv + 2;
	base = event_base_new();
	load();
	event_add(event_new(base, -1, EV_PERSIST, swap, NULL), &often);
	event_base_dispatch(base);
	for (int i = 1; i < n_places; i++)
		if (places[i] != places[0])
			fputs("at other places\n", stderr);
	return 0;
}
END_C
build() {
	$CC -g -O1 -shared -fPIC "-DCALLBACK=$1" "-Wl,--build-id=${3:-sha1}" -o "$2" plugin.c || exit 99
}
$CC -g -O1 -o host host.c -levent 2>errors || skip "no libevent to build with: $(head -n 1 errors)"

# record NAME (PATH CALLBACK)...: a trace of that name, 20 calls of each callback.
record() {
	name=$1
	shift
	"$dial9" record --quiet -o "$name" -- ./host 20 "$@" >places 2>&1
	cat places
}

# called TRACE: the callbacks of plugins, with their calls.
called() {
	"$dial9" events -f text -e PollStartEvent "$1" 2>&1 | grep -oE '"(cb_[a-z]+|p[a-z]\.so\+0x)' | sort | uniq -c
}

# report TRACE: the report's word about files that name nothing.
report() {
	"$dial9" report --no-pager "$1" | sed -n '/^! p[a-z]\.so /,/ran\.$/p'
	"$dial9" report -v --no-pager --width 200 "$1" | grep names-missing | sed 's/so [0-9].*//; s/^[0-9][0-9]* /N /'
}

say "two plugins, one after the other at the same place: each has its own calls"
build cb_first pa.so
build cb_other pb.so
record two ./pa.so cb_first ./pb.so cb_other
called two

say "loaded by a relative path, and found from another directory"
(cd / && "$dial9" symbolize -o "$work/named" "$work/two" | grep 'p[ab]\.so')
called named

say "the first is gone: the other one does not name its calls"
mv pa.so kept.so
called two
report two
mv kept.so pa.so

say "without a build-id"
build cb_first pc.so none
record bare ./pc.so cb_first
called bare

say "another file without a build-id at its place: it names nothing, and the report says so"
cp -p pc.so copy.so
build cb_later pc.so none
called bare
report bare

say "the recorded one, elsewhere"
mkdir old
mv copy.so old/pc.so
"$dial9" symbolize --debug-dir old -o old.bin bare | grep 'pc\.so'
called old.bin
finish ''
