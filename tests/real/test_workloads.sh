#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The workloads among the examples, and the service that is run as in production: what they count is what their traces
# have.  Under sanitizers, too, and with VALGRIND=valgrind under that: neither finds anything, nor a leak.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need_node
examples=$top_builddir/examples
export ASAN_OPTIONS="detect_leaks=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
many=60 requests=20
[ -z "${VALGRIND:-}" ] || many=10 requests=3 # each takes so much longer

# looked_at COMMAND...: in the place of this shell, under valgrind if that is asked for.
looked_at() {
	[ -z "${VALGRIND:-}" ] || set -- "$top_builddir/libtool" --silent --mode=execute "$VALGRIND" --quiet --fair-sched=yes \
		--error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "$@"
	exec "$@"
}

# workload NAME ARG...: runs it; $numbers of its first line.
workload() {
	name=$1
	shift
	(DIAL9_TRACE_DIR=$dir/$name looked_at "$examples/$name" "$@") >"$dir/$name.out" || fail "$name exited with $?"
	# One word each is meant.
	# shellcheck disable=SC2046
	set -- $(sed -n '1 s/[^0-9]/ /gp' "$dir/$name.out")
	numbers=$*
}

# called NAME NUMBERS CALLBACK...: so often each was called, as its trace has it.
called() {
	what=$1 expected=$2
	shift 2
	equal "$what: $*" "$expected" "$(report "$dir/$what" "'$*'.split(' ').map((name) =>
		r.callbacks.filter((c) => c.name === name).reduce((n, c) => n + c.polls, 0)).join(' ')")"
}

workload simple_workload $many
equal "simple_workload: tasks, steps" "$numbers" "$many $((10 * many))"
called simple_workload $((10 * many)) take_step
equal "simple_workload: tasks that began and ended" "$(report "$dir/simple_workload" '(({ TaskSpawnEvent, TaskTerminateEvent }) =>
	[TaskSpawnEvent, TaskTerminateEvent])(r.trace.events).join(" ")')" "$many $many"

workload realistic_workload $requests
equal "realistic_workload: requests, answers, steps" "$numbers" "$((5 * requests)) $((5 * requests)) 30"
called realistic_workload "$numbers" on_request on_answer rebuild_index
equal "realistic_workload: lanes" "$(report "$dir/realistic_workload" 'r.workers.map((w) => w.name).sort().join()')" clients,server

# Its second line is the recorder's count, which knows nothing of what the recorder adds by itself.
workload long_workload 1
called long_workload "$numbers" on_message on_answer burst_part on_yield
equal "long_workload: events, bytes" "$(sed -n '2 s/[^0-9][^0-9]*/ /gp' "$dir/long_workload.out")" \
	"$("$dial9" info --json "$dir/long_workload" | node -e 'const { events } = JSON.parse(require("fs").readFileSync(0, "utf8"));
		console.log(Object.entries(events).reduce((n, [name, count]) => /^(ClockSync|SegmentMetadata|Module|Recorder)/.test(name) ? n : n + count, 0));') $(cat "$dir"/long_workload/*/trace.* | wc -c) "

# What was cancelled was never called.
workload cancelled_task $requests
equal "cancelled_task: answers, timeouts, connections" "${numbers% *}" "$requests $requests $requests"
called cancelled_task "$requests ${numbers##* } 0 0" on_answer on_beat give_up on_hang_up

workload completing_task $requests
equal "completing_task: shots, steps, reads, ends" "$numbers" "$requests $((5 * requests)) $requests $requests"
called completing_task "$numbers" on_shot on_step on_data on_end

# The last of its samples has the totals.
workload custom_source 200
equal "custom_source: samples" "${numbers%% *}" "$(report "$dir/custom_source" r.trace.events.CacheSample)"
equal "custom_source: hits, misses" "${numbers#* }" "$("$dial9" events -e CacheSample "$dir/custom_source" | tail -n 1 |
	sed 's/.*"hits":\([0-9]*\),"misses":\([0-9]*\).*/\1 \2/')"

# serve NAME VARIABLE=VALUE...: the service, its shutdown in 2 s at most; $service, $port.
serve() {
	name=$1
	shift
	: >"$dir/$name.out"
	# What comes are assignments.
	# shellcheck disable=SC2163
	(export DIAL9_TRACE_DIR="$dir/$name" "$@" && looked_at "$examples/production" 0 2000) >"$dir/$name.out" 2>"$dir/$name.err" &
	service=$!
	pids="$pids $service"
	until port=$(sed -n 's/^listening on //p' "$dir/$name.out") && [ -n "$port" ]; do
		kill -0 $service || fail "$name does not listen: $(cat "$dir/$name.err")"
		sleep 0.05
	done
}

# ask PATH...: what is answered to each, in a row.  Of the last two, which come with a request before them on one
# connection, only that one is waited for until the service is told to end.
ask() {
	node -e '
		const [port, pid, ...paths] = process.argv.slice(1);
		const ask = (...paths) => new Promise((begun) => {
			const socket = require("net").connect(port, "127.0.0.1", () => socket.write(paths.map((path) =>
				`GET ${path} HTTP/1.1\r\nHost: here\r\n\r\n`).join("")));
			let got = "";
			const answers = () => [...got.matchAll(/HTTP\/1\.1 (\d+)/g)].map((answer) => answer[1]);
			const all = new Promise((done, failed) => {
				socket.on("data", (data) => { got += data; begun({ all }); if (answers().length === paths.length) socket.end(); });
				socket.on("error", failed).on("close", () => done(answers().join()));
			});
		});
		(async () => {
			const all = [];
			for (const path of paths.slice(0, -2)) all.push(await (await ask(path)).all);
			const pending = [];
			for (const path of paths.slice(-2)) pending.push(await ask("/", path));
			process.kill(+pid, "SIGTERM");
			for (const { all: answers } of pending) all.push(await answers);
			console.log(all.join(" "));
		})();' "$port" $service "$@"
}

# In flight mode, which is what it asks for itself; the dump of what failed has all that was before it and after.
serve production
equal "production: answers" "$(ask / /fail / '/order?1' '/order?1000' '/order?60000')" "200 500 200 200 200,200 200,503"
wait $service || fail "production ended with $?: $(cat "$dir/production.err")"
equal "production: hellos, orders, failures, cut off" "$(sed -n '2 s/[^0-9][^0-9]*/ /gp' "$dir/production.out")" "4 2 1 1 "
called production "4 3 3 1" hello take_order on_answer fail
equal "production: what fired" "$(report "$dir/production" 'r.trace.fired.some((fired) => fired.trigger === "failed")')" true
equal "production: dumps, segments" "$(find "$dir/production" -name 'dump.*.json' | wc -l) $(find "$dir/production" -name '*.zst' | wc -l)" "1 1"

# The environment goes before what it asks for.
serve continuous DIAL9_MODE=continuous DIAL9_SERVICE_NAME=shop
equal "continuous: answers" "$(ask / '/order?1' '/order?1')" "200 200,200 200,200"
wait $service || fail "continuous ended with $?"
called continuous "3 2" hello take_order
"$dial9" info --json "$dir/continuous" | grep -q '"recorder.mode":"continuous".*"service":"shop"' || fail "the environment was not heard"

# Off, or where no trace can be written, it is the same service.
serve off DIAL9_ENABLED=false
equal "off: answers" "$(ask /fail / '/order?1' '/order?1')" "500 200 200,200 200,200"
wait $service || fail "off ended with $?"
[ -z "$(find "$dir/off" -type f 2>/dev/null)" ] || fail "it was recorded although it is off"
: >"$dir/no_directory"
serve no_directory
equal "no_directory: answers" "$(ask /fail / '/order?1' '/order?1')" "500 200 200,200 200,200"
wait $service || fail "no_directory ended with $?"
grep -q '^not recorded: ' "$dir/no_directory.err" || fail "nothing says that it is not recorded"
