#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What recording costs a service on this machine: the HTTP server of examples/plain_http.c answers ab alone and under
# `dial9 record`, in turns, on loopback.
#
#	compare_overhead.sh [SECONDS]		of load in all, 2 at least [20]
#
# Run it in the folder of the build.  The servers share one processor, and ab has another, where there are two.
# Printed are the medians of the turns, and of the ratios within a round, so that a machine that is busy for a while
# slows down both.
set -eu

fail() {
	echo "compare_overhead.sh: $1" >&2
	exit 1
}

seconds=${1-20}
case $seconds in
'' | *[!0-9]* | ?????* | 0 | 1) fail "'$seconds' is no number of seconds from 2 to 9999" ;;
esac
for file in core/dial9 examples/plain_http; do
	[ -x "$file" ] || fail "there is no $file here: run it in the folder of the build, after make $file"
done
command -v ab >/dev/null || fail "ab is missing (Debian: apache2-utils)"

# Turns of whole seconds, which is what ab counts; ten of them, if there is time for so many.
turn=$((seconds < 20 ? 1 : seconds / 10))
rounds=$((seconds / (2 * turn)))
WARM=2000 # requests before the first

# on CPU COMMAND...: there, where that can be said and there is a choice.
cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)
first=${cpus%%[-,]*} last=${cpus##*[-,]}
on() {
	cpu=$1
	shift
	if [ "$first" != "$last" ] && command -v taskset >/dev/null; then
		exec taskset -c "$cpu" "$@"
	fi
	exec "$@"
}

dir=$(mktemp -d)
pids=''
stop() {
	for pid in $pids; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" || true
	done
	pids=''
}
trap 'stop; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM HUP

# start NAME COMMAND...: a server; $pid, $port.
start() {
	name=$1
	shift
	: >"$dir/$name.out"
	(on "$first" "$@" >"$dir/$name.out" 2>"$dir/$name.err") &
	pid=$!
	pids="$pids $pid"
	i=0
	until port=$(sed -n 's/^listening on //p' "$dir/$name.out") && [ -n "$port" ]; do
		i=$((i + 1))
		{ [ $i -lt 200 ] && kill -0 $pid 2>/dev/null; } || fail "the server does not start: $(cat "$dir/$name.err")"
		sleep 0.05
	done
}

# ns on a CPU of all threads of a server.
cpu_ns() {
	awk '{ sum += $1 } END { printf "%.0f\n", sum }' "/proc/$1/task"/*/schedstat
}

# load NAME PID PORT: a turn; one more line of $dir/NAME: requests a second, p50 and p99 in ms, us of CPU a request, requests.
load() {
	before=$(cpu_ns "$2")
	(on "$last" ab -q -k -c 10 -t "$turn" -n 10000000 -e "$dir/times" "http://127.0.0.1:$3/") >"$dir/ab" 2>&1 ||
		fail "ab: $(tail -n 1 "$dir/ab")"
	after=$(cpu_ns "$2")
	awk -F '[:,] *' -v ns=$((after - before)) '
		/^Failed requests/ && $2 + 0 { failed = $2 + 0 }
		/^Complete requests/ { n = $2 + 0 }
		/^Requests per second/ { rate = $2 + 0 }
		$1 == "50" { p50 = $2 }
		$1 == "99" { p99 = $2 }
		END {
			if (failed || !n || !rate) exit 1
			print rate, p50, p99, ns / 1000 / n, n
		}' "$dir/ab" "$dir/times" >>"$dir/$1" || fail "requests failed: $(grep '^Failed' "$dir/ab" || cat "$dir/ab")"
}

start without examples/plain_http
alone="$pid $port"
start with core/dial9 record --quiet --exec -o "$dir/trace" -- examples/plain_http
recorded="$pid $port"
echo "$rounds rounds of $turn s each without and with dial9 ..."
for port in "${alone#* }" "${recorded#* }"; do
	ab -q -k -c 10 -n $WARM "http://127.0.0.1:$port/" >"$dir/ab" 2>&1 || fail "ab: $(tail -n 1 "$dir/ab")"
done
# One word for pid and port each is meant.
# shellcheck disable=SC2086
for _ in $(seq $rounds); do
	load without $alone
	load with $recorded
done
stop

bytes=$(find "$dir/trace" -type f -exec cat {} + | wc -c)
events=$(core/dial9 info --json "$dir/trace" | sed -n 's/.*"total_events":\([0-9]*\).*/\1/p')
paste -d ' ' "$dir/without" "$dir/with" | awk -v bytes="$bytes" -v events="$events" -v requests=$WARM '
	function median(values, n,    i, j, v) {
		for (i = 2; i <= n; i++) {
			v = values[i]
			for (j = i - 1; j && values[j] > v; j--)
				values[j + 1] = values[j]
			values[j + 1] = v
		}
		return n % 2 ? values[(n + 1) / 2] : (values[n / 2] + values[n / 2 + 1]) / 2
	}
	function row(what, column, format,    i, a, b, ratio) {
		for (i = 1; i <= NR; i++) {
			a[i] = all[i, column]
			b[i] = all[i, column + 5]
			ratio[i] = b[i] / (a[i] > 0 ? a[i] : 1e-9)
		}
		printf "%-22s " format " " format "   x%.3f\n", what, median(a, NR), median(b, NR), median(ratio, NR)
	}
	{
		for (i = 1; i <= NF; i++)
			all[NR, i] = $i
		requests += $10
	}
	END {
		printf "%-22s %12s %12s   ratio\n", "", "without", "with dial9"
		row("requests a second", 1, "%12.0f")
		row("p50, ms", 2, "%12.3f")
		row("p99, ms", 3, "%12.3f")
		row("CPU a request, us", 4, "%12.2f")
		printf "%-22s %12s %12.1f\n", "events a request", "-", events / requests
		printf "%-22s %12s %12.1f\n", "bytes a request", "-", bytes / requests
		printf "%-22s %12s %12.2f\n", "bytes an event", "-", bytes / events
	}'
