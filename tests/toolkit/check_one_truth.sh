#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What two surfaces tell of a trace is the same: report, page, query, export.  Of traces that were made, of the demo's, of programs that run here,
# and of one that another recorder wrote, where it is there ($D9_FOREIGN_TRACE).
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
dial9=$top_builddir/core/dial9
"$dial9" query --schema >/dev/null 2>&1 || {
	echo "dial9 was built without SQLite"
	exit 77
}
mkdir "$work/traces"
for kind in small two life cut late spans callbacks odd repeats; do
	"$top_builddir/tests/cli/make_trace" $kind zstd "$work/traces/$kind.bin.zst" 200
done
# Threads off the CPU, with loops and without, in switches and calls that blocked; with slices, and where these end first.
for duty in 1 0.05; do
	"$top_builddir/tests/cli/make_samples" plain "$work/traces/off_cpu_$duty.bin" <<-END
		duty $duty
		row 0x1010 0 nap svc.c 10
		row 0x1020 0 save svc.c 11
		spawn 2000 0x2000 0 1
		poll 1000000 1 1 0x2000 0
		switch 2000000 1 0x1010
		switch 5000000 1 0x1010
		taken 6000000 1 1 0 0x1020
		blocked 6000000 1 fsync 9000000
		switch 7000000 1 0x1010
		end 15000000 1
		park 15100000 1 0
		switch 15200000 1 0x1010
		unpark 25200000 1 0
		switch 26000000 2 0x1010
		taken 33000000 2 0 0 0x1020
		switch 34000000 2 0x1010
		poll 90000000 1 1 0x2000 0
		switch 95000000 1 0x1010
		end 350000000 1
		poll 360000000 1 1 0x2000 0
		switch 365000000 1 0x1010
		end 2370000000 1
	END
done
for demo in "$top_srcdir"/core/demo/*/; do
	cp -R "$demo" "$work/traces/demo_$(basename "$demo")"
done
foreign=${D9_FOREIGN_TRACE:-$top_srcdir/../shared/data/foreign-demo-trace.bin.gz}
if [ -e "$foreign" ]; then
	cp "$foreign" "$work/traces/foreign.bin.gz"
else
	echo "there is no trace of another recorder: $foreign"
fi

# record NAME PROGRAM...: linked with the library, it needs no preloading.
record() {
	name=$1
	shift
	DIAL9_TRACE_DIR=$work/traces/$name DIAL9_MEMORY_PROFILE_ENABLED=true "$@" >"$work/$name.out"
}
if [ -x "$top_builddir/examples/http_service" ]; then
	record nested_loop "$top_builddir/examples/scenario_nested_loop" attached
	record cores "$top_builddir/examples/thread_per_core" 2 200
	record several "$top_builddir/examples/several_bases" 5
	[ ! -x "$top_builddir/examples/scenario_glib_check" ] || record glib "$top_builddir/examples/scenario_glib_check"
	DIAL9_TRACE_DIR=$work/traces/service "$top_builddir/examples/http_service" 0 >"$work/service.out" &
	service=$!
	i=0
	until port=$(sed -n 's/^listening on //p' "$work/service.out") && [ -n "$port" ]; do
		i=$((i + 1))
		[ $i -lt 400 ] || exit 99
		sleep 0.05
	done
	# Cheap handlers and dear ones, on connections that stay open.
	node --input-type=module -e '
		import { Agent, get } from "node:http";
		const [port, n] = process.argv.slice(1).map(Number), agent = new Agent({ keepAlive: true, maxSockets: 8 });
		const ask = (path) => new Promise((done, fail) => get({ host: "127.0.0.1", port, path, agent }, (answer) => answer.resume().on("end", done)).on("error", fail));
		for (let i = 0; i < n; i += 40) await Promise.all([...Array(40).keys()].map((k) => ask(k || i % 200 ? "/hello" : "/report")));
		agent.destroy();
	' "$port" "${D9_REQUESTS:-400}"
	kill -TERM $service
	wait $service
	hellos=$(sed -n 's/ hellos$//p' "$work/service.out")
	called=$("$dial9" query -f csv "$work/traces/service" "SELECT count(*) FROM calls WHERE name = 'hello'" | tail -n 1)
	[ "$hellos" = "$called" ] || {
		echo "hello: $hellos calls by the service, $called in SQL"
		exit 1
	}
fi
D9_DIAL9=$dial9 D9_TRACES=$work/traces node --test "$top_srcdir/tests/toolkit/test_one_truth.mjs"
