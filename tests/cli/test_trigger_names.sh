#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Names of functions in triggers: `dial9 record --trigger` looks them up before the start.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

cat >lib.c <<'END'
#include <unistd.h>

void lib_on_read(int fd, short what, void *arg);

void lib_on_read(int fd, short what, void *arg)
{
	(void)fd, (void)what;
	usleep(20000);
	++*(int *)arg;
}
END
cat >prog.c <<'END'
#include <event2/event.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void lib_on_read(int fd, short what, void *arg);
static int calls;

/* All take too long. */
static void parse_head(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	usleep(20000);
	++*(int *)arg;
}

static void parse_body(evutil_socket_t fd, short what, void *arg)
{
	parse_head(fd, what, arg);
	calls += 2;
}

#define F(n) void zz##n(void); void zz##n(void) { calls -= n; }
#define F8(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7)
#define F64(n) F8(n##0) F8(n##1) F8(n##2) F8(n##3) F8(n##4) F8(n##5) F8(n##6) F8(n##7)
F64(1) F64(2) F64(3) F64(4)
#ifdef TOO_MANY
F(5)
#endif

int main(int argc, char **argv)
{
	struct event_base *base = event_base_new();
	const char *which = argc > 1 ? argv[1] : "head";
	event_callback_fn fn = !strcmp(which, "lib") ? lib_on_read : !strcmp(which, "body") ? parse_body : parse_head;

	alarm(300);
	event_base_once(base, -1, EV_TIMEOUT, fn, &calls, &(struct timeval){ 0, 1000 });
	event_base_dispatch(base);
	event_base_free(base);
	return 0;
}
END
$CC -g -O1 -fPIC -shared -Wl,-soname,libnamed.so.1 -o libnamed.so.1 lib.c || exit 99
build() {
	out=$1
	shift
	$CC -g -O1 "$@" -o "$out" prog.c ./libnamed.so.1 -levent -Wl,-rpath,"$work" || exit 99
}
build prog
build nopie -no-pie
build many -DTOO_MANY
cp prog stripped
strip stripped
mkdir -p debug
cp prog apart
objcopy --only-keep-debug apart apart.debug
strip apart
objcopy --add-gnu-debuglink=apart.debug apart

# fired PROGRAM WHICH CONDITION: what fired, as the trace tells.
fired() {
	rm -rf tr
	"$dial9" record --quiet -o tr --trigger "$3" -- "./$1" "$2" || echo "[exit status $?]"
	echo "$1 $2: $("$dial9" events -e DumpTriggerEvent tr | sed -n 's/.*"trigger":"\([^"]*\)".*/\1/p')"
}

say "functions of the program, with any kind of addresses, and of a library that it needs"
for program in prog nopie apart; do
	fired $program head 'one: poll > 10ms where callback ~ parse_head'
	fired $program body 'one: poll > 10ms where callback ~ parse_head'
	fired $program body 'both: poll > 10ms where callback ~ parse_* then 0s'
done
fired prog lib 'poll > 10ms where callback ~ lib_on_?ead where loop ~ *'
fired prog head 'poll > 10ms where callback ~ lib_on_read'
fired stripped lib 'poll > 10ms where callback ~ lib_on_read'
fired prog head 'poll > 10ms where callback ~ parse_* where callback ~ *_head; never: poll > 10s'

say "the trace has what the user wrote"
"$dial9" info tr | sed -n 's/^ *\(trigger\.[^ ]*.*\)/\1/p'
grep -o '"trigger": "[^"]*"' tr/*/dump.*.json | sort -u

say "the report says what the value of a trigger with a name is, and what it had to be over"
"$dial9" report tr | sed -n 's/ at [0-9.]* [mun]*s: poll [0-9.]* ms,/ at T: poll N ms,/p'

say "offsets and globs that are none of names stay as they are"
offset=$(nm prog | sed -n 's/^0*\([0-9a-f]*\) t parse_head$/\1/p')
fired prog head "poll > 10ms where callback ~ prog+0x$offset"
fired prog head 'poll > 10ms where callback ~ *'
fired stripped head "poll > 10ms where callback ~ stripped+0x$offset"

say "256 offsets are enough, 257 are too many"
fired prog head "poll > 10ms where callback ~ zz???; all: poll > 10ms"
run record --trigger 'poll > 10ms where callback ~ zz*' -- ./many
run record --trigger 'poll > 10ms where callback ~ zz??? where callback ~ parse_*' -- ./prog

say "names that nothing has"
run record --trigger 'slow: poll > 10ms where callback ~ "parse head"; poll > 1s where loop ~ x where callback ~ nothing_*' -- ./prog
run record --trigger 'poll > 10ms where callback ~ parse_*' -- ./stripped
run record --trigger 'poll > 10ms where callback ~ parse_head' -- ./stripped
run record --trigger 'poll > 10ms where callback ~ event_base_*' -- ./stripped
run record --trigger 'poll > 10ms where callback ~ parse_*' -- ./missing

say "from the environment a name is a mistake, and what stands for one is taken"
DIAL9_TRIGGERS="poll > 10ms where callback ~ parse_*; it: poll > 10ms where callback ~ any resolved prog+0x1|+0x$offset" \
	"$dial9" record --quiet -o tr2 -- ./prog head
"$dial9" info tr2 | sed -n 's/^ *\(trigger[_.][a-z1.]*\) */\1 /p'
"$dial9" events -e DumpTriggerEvent tr2 | sed -n 's/.*"trigger":"\([^"]*\)".*/\1/p'
finish 's/prog+0x[0-9a-f]*/prog+0xN/; s/^\(dial9 record: .*column [0-9]*: \)[0-9]* functions/\1N functions/'
