#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dial9 record --memory: a leak of one block in a hundred is told by its place, totals are near the truth, what cannot be
# sampled is told, and programs without loops, killed ones and linked ones are recorded as well.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

lib=$top_builddir/adapters/.libs

# A request allocates a buffer, and forgets it one time in a hundred.  "even": no third of its time has few of them.
cat >svc.c <<'END'
#include <event2/event.h>
#include <stdlib.h>
#include <time.h>
#define ROUNDS 400
static struct event *timer;
static int left = ROUNDS;

static char *parse_header(int i)
{
	char *copy = malloc(400 + i % 7);

	*copy = 'x';
	return copy;
}

static double at[ROUNDS + 1];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

static int is_even(void)
{
	double third = (at[ROUNDS] - at[0]) / 3;
	int first = 0, second = 0;

	for (int i = 1; i <= ROUNDS; i++) {
		first += at[i] < at[0] + third;
		second += at[i] >= at[0] + third && at[i] < at[0] + 2 * third;
	}
	return first > ROUNDS / 4 && second > ROUNDS / 4 && ROUNDS - first - second > ROUNDS / 4;
}

static void on_request(evutil_socket_t fd, short what, void *base)
{
	static int n;

	(void)fd;
	(void)what;
	for (int i = 0; i < 500; i++) {
		char *volatile header = parse_header(i);

		if (++n % 100)
			free(header);
	}
	at[ROUNDS - --left] = now();
	if (left)
		event_add(timer, &(struct timeval){ 0, 2000 });
	else
		event_base_loopbreak(base);
}

int main(int argc, char **argv)
{
	struct event_base *base;

	(void)argv;
	at[0] = now();
	base = event_base_new();
	timer = evtimer_new(base, on_request, base);
	event_add(timer, &(struct timeval){ 0, 20000 });
	event_base_dispatch(base);
	event_free(timer);
	event_base_free(base);
	return argc > 1 && !is_even();
}
END
$CC -g -O1 -fno-builtin -fno-inline -o svc svc.c -levent 2>errors || skip "no libevent to build with: $(head -n 1 errors)"

say "a leak of one in a hundred"
# A leak goes on all the time: where the machine held the program up for long, it is recorded again.
tries=1
until DIAL9_MEMORY_SEED=3 "$dial9" record -q --memory=4K -o leak -- ./svc even || [ $tries = 5 ]; do
	rm -rf leak
	tries=$((tries + 1))
done
run report --json leak | sed 1d >leak.json
python3 - <<'END'
import json

report = json.load(open("leak.json"))
finding = [f for f in report["findings"] if f["check"] == "leak-by-site"]
for f in finding:
    print(f["severity"], f["name"])
memory = report["memory"]
site = memory["sites"][0]
print(site["name"], " < ".join(site["stack"][:2]))
# 200,000 blocks of 403 bytes, of which 2,000 are left: 81 MB in samples of 4 KiB are known within 4 %.
print("allocated", 0.96 < site["allocated"]["bytes"] / 80.6e6 < 1.04)
print("in calls of", [c["way"] for c in memory["callbacks"]])
print("live", 0.5 < site["live"]["bytes"] / 0.806e6 < 1.6)
print(report["trace"]["dropped_allocs"], report["trace"]["dropped_frees"], memory["evicted"])
END
"$dial9" export --kind live --format folded -o - leak | grep -o 'on_request;parse_header'

"$dial9" events --format text leak | grep -m 1 -o 'callchain=.parse_header svc.c:10'
"$dial9" symbolize leak >/dev/null
"$dial9" events leak | grep -c -m 1 '"symbol_name":"parse_header".*"source_line":10'

say "by way of the C++ library"
cat >cxx.cc <<'END'
#include <vector>

std::vector<int> *kept[50];

__attribute__((noinline)) static void remember(int i)
{
	kept[i] = new std::vector<int>(1000);
}

int main()
{
	for (int i = 0; i < 50; i++)
		remember(i);
	return 0;
}
END
# Its functions are the program's own, or inlined into them.
for level in -O0 -O1; do
	"${CXX:-c++}" -g $level -o cxx cxx.cc || exit 99
	"$dial9" record -q --memory=1 -o cxx$level -- ./cxx
	"$dial9" report --json cxx$level | python3 -c '
import json, sys
site = json.load(sys.stdin)["memory"]["sites"][0]
print(site["name"], site["live"]["samples"])'
done

say "totals"
cat >totals.c <<'END'
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int main(void)
{
	uint64_t state = 1, bytes = 0;

	for (int i = 0; i < 1500000; i++) {
		state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
		size_t size = (size_t)1 << (4 + (state >> 40) % 11);

		size += (state >> 20) % size;
		free(malloc(size));
		bytes += size;
	}
	printf("%llu\n", (unsigned long long)bytes);
	return 0;
}
END
$CC -O1 -fno-builtin -o totals totals.c || exit 99
DIAL9_MEMORY_SEED=3 "$dial9" record -q --memory=16K -o totals.d -- ./totals >truth
"$dial9" report --json totals.d >totals.json
python3 - <<'END'
import json

memory = json.load(open("totals.json"))["memory"]
true_bytes = int(open("truth").read())
# From samples of 16 KiB: the standard deviation is 0.1 % of the bytes, and 0.8 % of the blocks.
print(abs(memory["allocated"]["bytes"] / true_bytes - 1) < 0.02, abs(memory["allocated"]["blocks"] / 1500000 - 1) < 0.06)
END

say "more live blocks than are followed"
cat >many.c <<'END'
#include <stdlib.h>

int main(void)
{
	for (int i = 0; i < 70000; i++)
		if (!malloc(24))
			return 1;
	return 0;
}
END
$CC -O1 -fno-builtin -o many many.c || exit 99
"$dial9" record -q --memory=1 -o many.d -- ./many
"$dial9" report --json many.d >many.json
python3 - <<'END'
import json

memory = json.load(open("many.json"))["memory"]
print(memory["live"]["samples"] >= 70000, memory["evicted"] > 4000)
print([f["message"].split(" ", 1)[1] for f in json.load(open("many.json"))["findings"] if f["check"] == "incomplete-data"])
END
"$dial9" report --section memory --width 120 many.d | grep -o 'less is live than it seems'

say "linked, killed"
cat >linked.c <<'END'
#include <dial9/memory.h>
#include <dial9/options.h>
#include <dial9/recorder.h>
#include <signal.h>
#include <stdlib.h>

static void *quietly(void)
{
	void *block;

	d9_memory_pause();
	block = malloc(777);
	d9_memory_resume();
	return block;
}

int main(void)
{
	struct d9_recorder *recorder;
	struct d9_options *options;

	if (d9_options_new(&options) || d9_options_set_memory(options, 1) || d9_options_set_memory_live_set(options, 1) ||
	    d9_options_set_trace_dir(options, "linked.d") || d9_recorder_start(options, &recorder))
		return 1;
	/* Sampling begins in the first round of the recorder's thread, which is over when the second seals a segment. */
	if (d9_recorder_rotate(recorder, 60000) || d9_recorder_rotate(recorder, 60000))
		return 2;
	free(malloc(1000000));
	free(quietly());
	free(malloc(555));
	raise(SIGKILL);
	return 0;
}
END
$CC -fno-builtin -I"$top_srcdir/core/include" -I"$top_builddir/core/include" -o linked linked.c -L"$lib" \
	-L"$top_builddir/core/.libs" -Wl,--no-as-needed -ldial9-memory -Wl,--as-needed -ldial9 \
	-Wl,-rpath,"$lib:$top_builddir/core/.libs" || exit 99
./linked
"$dial9" recover linked.d >recovered 2>&1 || cat recovered
"$dial9" events linked.d | grep -oE '"(AllocEvent|FreeEvent)"|"size":(555|777),' | grep -A 1 -B 1 size

say "children without us"
"$dial9" record -q --memory --no-follow -o alone -- sh -c 'sh -c "echo \"\$LD_PRELOAD\"; env | grep -c ^DIAL9_"'
"$dial9" record -q --memory -o followed -- sh -c 'sh -c "echo \"\$LD_PRELOAD\""' | grep -o 'libdial9-[a-z]*' | tr '\n' ' '
echo

say "switched on later"
cat >steady.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	const struct timespec pause = { 0, 1000000 };

	alarm(300);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	for (;;) {
		free(malloc(1000));
		nanosleep(&pause, NULL);
	}
}
END
$CC -O1 -fno-builtin -o steady steady.c || exit 99
"$dial9" record -q --memory=1 --start-disabled -o later -- ./steady >pid &
recorder=$!
until [ -s pid ]; do sleep 0.02; done
find later -mindepth 1 2>/dev/null | wc -l
# Its recorder may be on the way yet.
until "$dial9" enable "$(cat pid)" >/dev/null 2>&1; do sleep 0.02; done
until "$dial9" info later 2>/dev/null | grep -q AllocEvent; do sleep 0.05; done
echo "sampled once it was on"
kill -KILL "$(cat pid)"
wait $recorder 2>/dev/null
"$dial9" info later | sed -n 's/^  source.memory */memory /p'

say "not loaded, and refused"
DIAL9_MEMORY_PROFILE_ENABLED=yes run record -o off -- ./svc
"$dial9" info off | grep "^  source.memory"
"$dial9" report --section findings off | grep -A 2 "Allocations, which were asked for" | sed 's/^[0-9][0-9]* /N /'
run record --memory=0 -- ./svc
run record --memory=much -- ./svc
run record --memory=2000G -- ./svc

finish 's|^/[^ ]*/lib/||; s/recorded [0-9]* events/recorded N events/'
