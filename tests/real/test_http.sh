#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The evhttp service of examples/, unmodified under `dial9 record` and attached by itself, loaded by
# ab: requests handled, polls and parks equal ab's count, the service's own and an independent one.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need ab node ldd
service=$top_builddir/examples/.libs/http_service
[ -x "$service" ] || service=$top_builddir/examples/http_service # linked without libtool's wrapper
private_loop "$service"
requests=3000

# run TRACE: the service under ab, stopped by SIGTERM; what it counted itself goes to $dir/out.
run() {
	: >"$dir/out"
	(record "$1" "$top_builddir/examples/http_service" 0 >"$dir/out") &
	recorder=$!
	pids="$pids $recorder"
	i=0
	until port=$(sed -n 's/^listening on //p' "$dir/out") && [ -n "$port" ]; do
		i=$((i + 1))
		[ $i -lt 200 ] || fail "the service does not listen"
		sleep 0.05
	done
	ab -q -k -n $requests -c 8 "http://127.0.0.1:$port/hello" >"$dir/ab"
	ab -q -n 20 -c 2 "http://127.0.0.1:$port/report" >>"$dir/ab"
	kill -TERM $recorder
	wait $recorder || true
	plain "$1"
}

run_counted run
counted "$dir/second"

spans() {
	report "$dir/second" "(r.callbacks.find((c) => c.name === '$1') ?? {}).polls"
}
equal "hello: ab and the trace" $requests "$(spans hello)"
equal "report: ab and the trace" 20 "$(spans render_report)"
equal "hello: the service and the trace" "$(sed -n 's/ hellos$//p' "$dir/out")" "$(spans hello)"
equal "events of the service's own" $((requests + 20)) \
	"$(report "$dir/second" 'r.trace.events.HttpRequest')"
equal "first finding" long-callback "$(report "$dir/second" 'r.findings[0].check')"
report "$dir/second" 'r.findings[0].message' | grep -q render_report || fail "not named"
