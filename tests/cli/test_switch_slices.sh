#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The sleeps of a thread in a slice of switch samples are found, with the function that slept, and none of later: times what
# the duty cycle says, they stand for all of them within 10 %, and `dial9 report` scales them to the whole call within 20 %.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

# Writes when each of its sleeps ended. They are too short to be told as calls that block.
cat >sleeps.c <<'END'
#include "cpu_work.h"
#include <event2/event.h>
#include <stdint.h>

static int left = 3000;

__attribute__((noinline)) static void nap(void)
{
	struct timespec t = { 0, 300000 };

	nanosleep(&t, NULL);
	clock_gettime(CLOCK_MONOTONIC, &t);
	printf("%lld\n", (long long)t.tv_sec * 1000000000 + t.tv_nsec);
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	(void)fd, (void)what;
	while (left--)
		nap();
	event_base_loopbreak(base);
}

int main(void)
{
	struct event_base *base = event_base_new();

	event_add(event_new(base, -1, 0, on_timer, base), &(struct timeval){ 0, 1000 });
	event_base_dispatch(base);
	return 0;
}
END
cc -g -O2 -rdynamic -I"$top_srcdir/tests/cli" -o sleeps sleeps.c -levent || exit 99

"$dial9" record --quiet --cpu off --off-cpu -o probe -- ./sleeps >ends
"$dial9" info probe | grep -q 'source.offcpu  *on' || skip "samples of switches are not permitted: $("$dial9" info probe |
	sed -n 's/^ *source.offcpu *//p')"

# What the slice, of 1 % of 10 s, has of the sleeps: the samples with a processor; those without are of calls that blocked.
scaled() {
	rm -rf tr
	"$dial9" record --quiet --cpu off --off-cpu -o tr -- ./sleeps >ends
	"$dial9" events -e CpuSampleEvent tr >samples
	"$dial9" events -f text -e CpuSampleEvent tr >stacks
	"$dial9" report --json tr >report.json
	python3 - <<'END'
import json, sys

ends = [int(line) for line in open("ends")]
begun = [json.loads(sample)["timestamp_ns"] for sample, stack in zip(open("samples"), open("stacks"))
         if " cpu=" in stack and "nanosleep" in stack and "nap sleeps.c" in stack]
if not begun:
    sys.exit("the thread did not run in the slice")
slept = sum(begun[0] < end <= begun[-1] for end in ends) + 1
print(len(begun), "samples of", slept, "sleeps in", (begun[-1] - begun[0]) / 1e6, "ms")
assert begun[-1] - begun[0] <= 100e6
callback, = [c for c in json.load(open("report.json"))["callbacks"] if c["name"].startswith("on_timer")]
# A busy machine lets the thread sleep more often in one part of the call than in another: the slice tells of its own rate.
all = (slept - 1) / (begun[-1] - begun[0]) * (ends[-1] - ends[0])
print("estimated:", callback["off_cpu_estimated"], "of", all, "at the slice's rate, of", len(ends), "in fact")
# The callback does nothing else but sleep.
print("asleep for", callback["off_cpu_ns"] / 1e6, "of", (ends[-1] - ends[0]) / 1e6, "ms")
sys.exit(not (abs(len(begun) / slept - 1) < 0.1 and slept >= 30 and
              abs(callback["off_cpu_estimated"] / all - 1) < 0.2 and
              abs(callback["off_cpu_ns"] / (ends[-1] - ends[0]) - 1) < 0.2))
END
}
# A thread that a busy machine does not let run where its slice begins or ends has not slept there: it is tried again.
said="all sleeps of the slice within 10 %, all that the report tells within 20 %"
for try in 1 2 3 4 5; do
	scaled >found 2>&1 && break
	if [ $try = 5 ] || grep -q Error found; then said=$(cat found); break; fi
done
"$dial9" info tr | sed -n 's/  */ /g; / sched.switch_duty/p'
echo "$said"
finish ''
