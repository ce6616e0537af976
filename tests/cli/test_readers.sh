#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Every command that reads, on traces of real programs with everything in them: each ends with the status that it should
# have, and in a build with sanitizers, which CI runs, without a complaint of one.
# The programs attach themselves, because a sanitizer's runtime cannot be preloaded: tests that record with dial9 record
# are skipped in that build, so no command had read a library's callback there.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"
exec >&3 2>&3

service=$top_builddir/examples/http_service
[ -x "$service" ] || skip "there are no examples: no libevent"
"$dial9" query --schema >schema || skip "dial9 was built without SQLite"
command -v python3 >/dev/null || skip "python3 is not installed"
tables=$(sed -n 's/^CREATE [A-Z]* \([a-z]*\).*/\1/p' schema)
trap 'kill $pids 2>/dev/null; rm -rf "$work"' EXIT
pids='' failed=0 ran=0

# ---- traces ----

# recorded DIR PROGRAM...: the program with all that can be recorded of it, into DIR.
recorded() {
	dir=$1
	shift
	exec env DIAL9_TRACE_DIR="$dir" DIAL9_CPU_PROFILE_ENABLED=1 DIAL9_CPU_SAMPLE_HZ=999 DIAL9_CPU_PROFILE_THREADS=all \
		DIAL9_SCHEDULE_PROFILE_ENABLED=1 DIAL9_BLOCKING_CALLS_ENABLED=1 DIAL9_TASK_DUMP_ENABLED=1 \
		DIAL9_TASK_DUMP_IDLE_THRESHOLD_MS=5 DIAL9_MEMORY_PROFILE_ENABLED=1 DIAL9_MEMORY_SAMPLE_RATE_BYTES=4096 \
		DIAL9_MEMORY_TRACK_LIVESET=1 DIAL9_PROCESS_RESOURCE_USAGE_ENABLED=1 DIAL9_SOCKET_ACCEPT_QUEUES_ENABLED=1 \
		DIAL9_LOG_BRIDGE=debug DIAL9_RING_MB="${ring:-8}" "$@"
}

# await WHO SED FILE: what sed makes of a line of FILE, once there is one.
await() {
	i=0
	until found=$(sed -n "$2" "$3") && [ -n "$found" ]; do
		i=$((i + 1))
		[ $i -lt 600 ] || { echo "$1 does not listen" >&2 && return 1; }
		sleep 0.05
	done
	echo "$found"
}

# start_service DIR: sets $server and $port.
start_service() {
	: >listens
	(recorded "$1" "$service" 0 >listens 2>server.errors) &
	server=$!
	pids="$pids $server"
	port=$(await "the service" 's/^listening on //p' listens) || exit 1
}

# Requests for the service: many short ones on connections that stay, and some that block it.
ask_service() {
	python3 - "$port" <<'END_PY'
import http.client, sys
connections = [http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60) for i in range(4)]
for i in range(400):
    c = connections[i % 4]
    c.request("GET", "/report" if i % 50 == 0 else "/hello")
    c.getresponse().read()
END_PY
}

# ---- commands ----

complaints=$work/complaint
# sanitized ARGUMENTS...: becomes a dial9 whose sanitizers, and those of its children, write to $complaints.
sanitized() {
	exec env ASAN_OPTIONS="detect_leaks=1:abort_on_error=0:exitcode=86:log_path=$complaints" LSAN_OPTIONS=exitcode=86 \
		UBSAN_OPTIONS="halt_on_error=1:print_stacktrace=1:exitcode=86:log_path=$complaints" "$dial9" "$@"
}

# reads STATUS|STATUS... ARGUMENTS...: a dial9 ends with one of them, and no sanitizer complains of it or of its children.
reads() {
	wanted=$1
	shift
	ran=$((ran + 1))
	(sanitized "$@") >out 2>errors </dev/null
	status=$?
	case "|$wanted|" in
	*"|$status|"*) ;;
	*)
		failed=$((failed + 1))
		echo "status $status, not $wanted: dial9 $*"
		tail -n 5 errors
		;;
	esac
	no_complaints "dial9 $*"
}

no_complaints() {
	for complaint in "$complaints".*; do
		[ -e "$complaint" ] || continue
		failed=$((failed + 1))
		echo "a sanitizer complains of: $1"
		head -n 40 "$complaint"
		rm "$complaint"
	done
}

# one SQL: the first row's first value in $trace, without quotes.
one() {
	"$dial9" query -f csv "$trace" "$1" 2>/dev/null | sed -n '2{s/"//g;s/,.*//;p;}'
}

# has WHAT SQL: the first value is no zero, or $trace proves nothing of WHAT.
has() {
	case $(one "$2") in
	'' | 0)
		failed=$((failed + 1))
		echo "$trace has no $1"
		;;
	esac
}

# Everything about $trace, which is of one process.
reads_all() {
	some="0|2"
	for option in '' --json; do
		reads 0 info $option "$trace"
	done
	for options in '' -v --json '--json --symbols' '-n 3 --width 40' '--no-symbols -v --color always' '--html -o page.html'; do
		# Words are meant.
		# shellcheck disable=SC2086
		reads 0 report $options "$trace"
	done
	reads '0|1' report --exit-code "$trace"
	reads '0|2' report --finding 1 "$trace"
	sections=
	for section in data findings workers callbacks time longest wakes timers queues tasks process blocking samples idle \
		memory spans events; do
		sections="$sections --section $section"
	done
	# shellcheck disable=SC2086
	reads 0 report $sections "$trace"

	task=$(one 'SELECT task FROM polls GROUP BY task ORDER BY count(*) DESC LIMIT 1')
	span=$(one 'SELECT span FROM spans WHERE callback = 0 LIMIT 1')
	span_name=$(one 'SELECT name FROM spans WHERE callback = 0 LIMIT 1')
	callback=$(one 'SELECT name FROM calls GROUP BY name ORDER BY sum(ms) DESC LIMIT 1')
	reads 0 events "$trace"
	reads 0 events -f text -v "$trace"
	reads 0 events -f text --no-symbols --from 10ms --to 200ms -n 100 -w 0 "$trace"
	reads 0 events -e PollStartEvent -e CpuSampleEvent "$trace"
	[ -z "$task" ] || reads 0 events -f text --life --task "$task" "$trace"
	[ -z "$span" ] || reads 0 events -f text --life --span "$span" "$trace"
	[ -z "$task" ] || reads 0 diagram --task "$task" -o life.svg "$trace"
	[ -z "$span" ] || reads 0 diagram --span "$span" "$trace"

	for table in $tables; do
		reads 0 query -f jsonl "$trace" "SELECT * FROM $table LIMIT 1000"
	done
	reads 0 query -f table "$trace" 'SELECT name, percentile(duration_ns, 99) FROM polls JOIN callbacks USING (callback) GROUP BY name'
	reads 0 query -f json --no-symbols "$trace" 'SELECT * FROM samples JOIN stacks USING (stack) LIMIT 10'
	reads 0 query -o all.db "$trace" 'SELECT count(*) FROM events'

	reads 0 export -o x.trc "$trace"
	reads 0 export -f trc.gz -o x.trc.gz "$trace"
	for kind in cpu off-cpu heap live idle; do
		for format in folded pprof speedscope; do
			reads $some export -f $format --kind $kind -o "x.$format" "$trace"
		done
		reads $some flamegraph --kind $kind -o x.svg "$trace"
	done
	reads $some export -f pprof --raw-addresses -o x.pb "$trace"
	for by in callback worker thread span; do
		reads $some flamegraph --by $by -o - "$trace"
		reads $some export -f folded --kind off-cpu --by $by --weight ns -o - "$trace"
	done
	reads $some export -f folded --kind heap --weight bytes -o - "$trace"
	reads $some export -f folded --callback "$callback" --weight samples -o - "$trace"
	reads $some export -f speedscope --callback '*e*' --min-duration 1ms -o - "$trace"
	reads $some flamegraph --callback '*e*' --from 10ms --to 10s -w 0 -o - "$trace"
	reads $some export -f folded --span "${span_name:-none}" --loop http -o - "$trace"

	reads 0 export -f parquet -o tables "$trace"
	partitions "$trace"

	rm -rf named
	reads 0 symbolize -o named "$trace"
	reads 0 report -v --no-symbols named
	reads $some export -f folded -o x.folded named
	for copy in named.trc named.trc.gz; do
		reads 0 export -o $copy named
		if [ "$(symbols_of named | wc -l)" -lt 10 ] || [ "$(symbols_of $copy)" != "$(symbols_of named)" ]; then
			failed=$((failed + 1))
			echo "$copy has other symbols than the trace"
		fi
	done
}

# partitions TRACE: each of its segments as rows of a fleet's tables.
partitions() {
	"$dial9" query -f csv "$1" 'SELECT path FROM segments' 2>/dev/null | sed '1d; s/^"//; s/"$//' >paths
	[ -s paths ] || { failed=$((failed + 1)) && echo "$1 has no segments"; }
	while read -r path; do
		reads 0 export -f parquet --partitions --slow 0 -o fleet "$path"
	done <paths
}

# symbols_of TRACE: one row each.
symbols_of() {
	"$dial9" events -e SymbolTableEntry "$1" 2>/dev/null | sed 's/"segment":[0-9]*//' | sort
}

# What others make of $trace over HTTP, and what `dial9 serve` starts for it.
serves() {
	: >served
	(sanitized serve "$trace") >served 2>errors </dev/null &
	serving=$!
	pids="$pids $serving"
	url=$(await "dial9 serve" 's|.*\(http://[^ ]*\).*|\1|p' served) || exit 1
	python3 - "$url" <<'END_PY' || failed=$((failed + 1))
import json, sys, time, urllib.request
base = sys.argv[1].split("?")[0]
def get(path):
    return urllib.request.urlopen(base + path, timeout=120).read()
segments = json.loads(get("api/segments"))["segments"]
assert segments, "no segments"
for segment in segments:
    assert len(get(segment["url"])) == segment["bytes"], segment
    assert json.loads(get("api/report?trace=" + segment["url"]))["version"]
for what in ("", "api/report", "api/page", "api/stacks"):
    get(what)
while json.loads(get("api/map"))["reading"]:
    time.sleep(0.1)
coverage = json.loads(get("api/callbacks"))["coverage"]
assert coverage["read"] == len(segments) and not coverage["failed"], coverage
END_PY
	kill "$serving"
	wait "$serving"
	no_complaints "dial9 serve $trace"
}

# The commands that take any trace, and what becomes of the others' output where it would be several processes'.
reads_several() {
	reads 0 info "$trace"
	reads 0 report -v --json "$trace"
	reads 0 report --html -o page.html "$trace"
	reads 0 events -f text "$trace"
	reads 0 query -o all.db "$trace"
	reads 2 export -o x.trc "$trace"
	reads 0 export -f parquet -o tables "$trace"
	partitions "$trace"
	reads 2 flamegraph -o x.svg "$trace"
	rm -rf named
	reads 0 symbolize -o named "$trace"
	reads 0 report --no-symbols named
	rm -rf scrubbed
	# What was killed has a segment that nobody sealed.
	reads '0|1|2' scrub --explain "$trace"
	reads '0|1|2' ship --to s3://bucket/p --dry-run "$trace"
	reads '0|1|2' scrub -o scrubbed "$trace"
	[ ! -d scrubbed/process-1 ] || reads 0 report -v scrubbed
}

mkdir all
start_service all/host-1
ask_service
for command in status "status --json" "top --once -i 100ms" "top -j -i 100ms" "dump -o dumped" rotate; do
	# shellcheck disable=SC2086
	reads '0|1' $command "$server"
done
reads 0 report all
ask_service
kill "$server"
wait "$server"

start_service all/host-2
ask_service
# The first segment is there about a second after the start.
i=0
until ls all/host-2/*/trace.* >out 2>&1 || [ $i = 600 ]; do
	i=$((i + 1))
	sleep 0.05
done
kill -9 "$server"
wait "$server" 2>/dev/null
for option in '' --json; do
	# shellcheck disable=SC2086
	reads '0|1' status $option -d all/host-2
done
reads 0 report -v all/host-2
reads 0 recover --json all/host-2
reads 0 recover all/host-2

# How soon each thread has its turn depends on the machine.
for jobs in 500 5000 50000; do
	rm -rf all/threads
	(recorded all/threads "$top_builddir/examples/thread_per_core" 4 $jobs >/dev/null 2>&1)
	trace=all/threads
	[ "$(one 'SELECT count(*) > 4 FROM workers')" != 1 ] || break
done
(recorded all/none "$top_builddir/examples/spans" all/spans >/dev/null 2>&1)
# How much a ring of one MiB cannot hold depends on the machine.
for callbacks in 50000 200000 800000; do
	rm -rf lost
	(ring=1 && recorded lost "$top_builddir/tests/real/flood" 4 $callbacks >/dev/null 2>&1)
	"$dial9" info lost | awk '/^[a-z]/ { on = /^lost events/ } on && NF == 2 { n += $2 } END { exit !n }' && break
done

trace=all/host-1
has "functions in a library's callback" 'SELECT count(*) FROM spans WHERE callback = 1'
has "samples in calls" 'SELECT count(*) FROM samples JOIN polls USING (poll)'
has "idle tasks" 'SELECT count(*) FROM dumps'
has "events of the program" "SELECT count(*) FROM events WHERE name = 'HttpRequest'"
reads_all
trace=all
has "several processes" 'SELECT count(*) > 3 FROM processes'
has "threads" 'SELECT count(*) > 4 FROM workers'
has "spans of the program" 'SELECT count(*) FROM spans WHERE callback = 0'
reads_several
serves
trace=lost
has "loss" 'SELECT sum(lost_events) FROM processes'
for trace in lost all/threads all/spans; do
	reads 0 report -v "$trace"
	reads 0 query -o all.db "$trace"
	reads '0|2' export -f speedscope -o x "$trace"
	reads '0|2' export -f pprof --kind off-cpu -o x "$trace"
	reads 0 export -f parquet -o tables "$trace"
	partitions "$trace"
done
"$dial9" agents demo demo >/dev/null || exit 99
for trace in demo/*; do
	reads 0 report -v --json "$trace"
	reads 0 query -o all.db "$trace"
	reads '0|2' export -f speedscope --kind cpu -o x "$trace"
	reads '0|2' export -f pprof --kind off-cpu -o x "$trace"
	reads '0|2' flamegraph --kind heap -o x.svg "$trace"
	reads '0|2' flamegraph --kind idle -o x.svg "$trace"
	partitions "$trace"
done
echo "$ran commands, $failed of them not as they should be"
[ $failed = 0 ]
