#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What go tool pprof reads in our profiles: samples, labels, inlined calls, lines, modules.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

command -v go >/dev/null || skip "no go (Debian: golang-go)"
# It looks for the binaries of a profile, and keeps files at home.
export HOME="$work" PPROF_BINARY_PATH="$work" PPROF_TMPDIR="$work" GOTOOLCHAIN=local
go tool -n pprof >/dev/null 2>&1 || skip "this go has no pprof"

"$top_builddir/tests/cli/make_samples" plain t.bin <<'END_S' || exit 99
module /nowhere/lib.so aabb01 0x1000000 0x10000 1500
module /nowhere/app aabb02 0x5000 0x10000 1500
row 0x5010 0 read_line svc.c 10
row 0x5010 1 parse<a;b> svc.c 12
row 0x6011 0 on_request svc.c 20
row 0x6000 0 on_request svc.c 19
row 0x7011 0 main svc.c 30
spawn 2000 0x6000 0 1
poll 10000 1 1 0x6000 0
taken 11000 1 0 0 0x5010 0x6011 0x7011
taken 12000 1 0 0 0x5010 0x6011 0x7011
taken 13000 1 0 0 0x1000123 0x6011 0x7011
taken 14000 1 0 1 0x5010 0x6011
taken 15000 1 0 0 0x99999 0x6011 0x7011
taken 15500 1 1 0 0x5010 0x6011 0x7011
end 16000 1
taken 17000 1 0 0
END_S

run export -o t.pb.gz t.bin
go tool pprof -raw t.pb.gz 2>errors
go tool pprof -top t.pb.gz 2>>errors
go tool pprof -tags t.pb.gz 2>>errors
go tool pprof -top -tagfocus callback=on_request t.pb.gz 2>>errors | grep accounting

say "by time, where the trace tells for how much a sample stands, with the span"
"$top_builddir/tests/cli/make_samples" plain timed.bin <<'END_S' || exit 99
hz 100
row 0x1010 0 parse svc.c 10
row 0x1030 0 hash_all svc.c 50
enter 11000 1 78 7 request
taken 12000 1 0 0 0x1010
taken 13000 1 0 0 0x1010
exit 14000 1 78 7
taken 15000 1 0 0 0x1030
END_S
run export -o timed.pb.gz timed.bin
go tool pprof -raw timed.pb.gz 2>>errors | sed '/^Locations/,$d'
go tool pprof -top timed.pb.gz 2>>errors | grep -E 'Type|parse|hash'
go tool pprof -top -sample_index=samples timed.pb.gz 2>>errors | grep -E 'Type|parse|hash'
go tool pprof -top -tagfocus span=request timed.pb.gz 2>>errors | grep accounting

say "the loop, and what was lost"
"$top_builddir/tests/cli/make_samples" plain loop.bin <<'END_S' || exit 99
loop 1
row 0x1010 0 parse svc.c 10
spawn 2000 0x1010 0 1
poll 10000 1 1 0x1010 0
taken 11000 1 0 0 0x1010
lost 12000 1234
END_S
run export -o loop.pb.gz loop.bin
go tool pprof -raw loop.pb.gz 2>>errors | sed '/^Locations/,$d'

say "without names, which it finds itself: of programs at fixed addresses and others"
if [ -e "$top_builddir/adapters/.libs/libdial9-preload.so" ] && [ -z "$SANITIZER" ]; then
	cat >spin.c <<'END'
#include <event2/event.h>

__attribute__((noinline)) static long burn(long n)
{
	volatile long x = 0;

	while (n--)
		x = x + n;
	return x;
}

static void on_timer(evutil_socket_t fd, short what, void *base)
{
	static int left = 40;

	(void)fd, (void)what;
	burn(5000000);
	if (!--left)
		event_base_loopbreak(base);
}

int main(void)
{
	struct event_base *base = event_base_new();

	event_add(event_new(base, -1, EV_PERSIST, on_timer, base), &(struct timeval){ 0, 1000 });
	return event_base_dispatch(base) < 0;
}
END
	for pie in -no-pie -pie; do
		cc -g -O1 -fPIE $pie -o spin spin.c -levent || exit 99
		rm -rf tr
		"$dial9" record --quiet -o tr -- ./spin
		"$dial9" export --raw-addresses -o raw.pb.gz tr
		go tool pprof -top raw.pb.gz 2>/dev/null | grep -cE ' (burn|on_timer|main)$'
	done
else
	printf '3\n3\n'
fi

say "off the CPU"
run export --kind off-cpu -o off.pb t.bin
go tool pprof -top off.pb 2>>errors
say "in calls that blocked, how often and how long"
"$top_builddir/tests/cli/make_samples" plain blocked.bin <<'END_S' || exit 99
row 0x1010 0 save svc.c 10
spawn 2000 0x1010 0 1
poll 10000 1 1 0x1010 0
taken 11000 1 1 0 0x1010
blocked 11000 1 fsync 3000000
taken 4011000 1 1 0 0x1010
blocked 4011000 1 fsync 5000000
end 9012000 1
END_S
run export --kind off-cpu -o blocked.pb.gz blocked.bin
go tool pprof -raw blocked.pb.gz 2>>errors | sed '/^Locations/,$d'
grep -iE 'malformed|invalid|unmarshal|fail' errors

finish '/^Time:/d; s/^Duration: .*Total/Total/; /^Duration/d; s/ *$//'
