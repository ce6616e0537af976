#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Record the demo trace, which `dial9 serve --demo` shows and the documents ask: examples that do one thing wrong
# each, and have all kinds of events between them.
#
#	examples/make_demo.sh DIR [BUILD]
#
# DIR gets NAME/trace.0.bin.zst of each.  BUILD is where `make check` has built the examples; without it they are built in /tmp/dial9-demo, so that the trace names no folder of yours:
# `examples/make_demo.sh core/demo` renews what is installed.
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
[ $# -ge 1 ] || {
	echo "usage: examples/make_demo.sh DIR [BUILD]" >&2
	exit 2
}
mkdir -p "$1"
dir=$(cd "$1" && pwd)
build=${2:-/tmp/dial9-demo}
names='blocked check clock growth hang helper mistakes timer wakes web'
programs='http_service mistakes scenario_blocked_callback scenario_glib_check scenario_glib_helper scenario_growth
	scenario_hang scenario_libev_stale_clock scenario_libev_timer_storm scenario_timer_late'

work=$(mktemp -d)
trap 'kill $pids 2>/dev/null || :; rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
pids=''
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME

if [ $# -lt 2 ]; then
	mkdir -p "$build"
	cd "$build"
	[ -f config.status ] || "$top/configure" --quiet CFLAGS="-g -O2 -ffile-prefix-map=$top/= -ffile-prefix-map=$(realpath --relative-to="$build" "$top")/="
	make -s -j"$(nproc)"
	# One word for each program is meant.
	# shellcheck disable=SC2046,SC2086
	make -s -j"$(nproc)" $(printf 'examples/%s ' $programs)
fi
build=$(cd "$build" && pwd)
for program in $programs; do
	[ -x "$build/examples/$program" ] || {
		echo "make_demo.sh: $build/examples/$program was not built" >&2
		exit 2
	}
done
cd "$work"

# (record NAME PROGRAM [ARGUMENTS]): what it prints goes to NAME.out.  libtool, as its own scripts would be recorded, too.
record() {
	name=$1 program=$2
	shift 2
	exec "$build/libtool" --silent --mode=execute "$build/core/dial9" record --quiet -o "$name" --name "$name" --cpu 499 --memory=16K --task-dumps=5 --accept-queues=20 \
		--log-bridge warning -- "$build/examples/$program" "$@" >"$name.out" 2>&1
}

# The two that take long, beside the others: they compute little.
(record growth scenario_growth memory) &
growth=$!
# In segments of a second, so that some begin inside of the request; is killed in the end.
(export DIAL9_ROTATION_SECS=1 && record hang scenario_hang 3) &
hang=$!
pids="$growth $hang"

(record web http_service 0) &
web=$!
pids="$pids $web"
until port=$(sed -n 's/^listening on //p' web.out 2>/dev/null) && [ -n "$port" ]; do
	kill -0 $web
	sleep 0.05
done
# Four clients that stay connected, and one that asks for a report now and then, on a connection of its own each time.
python3 - "$port" <<'END_PYTHON'
import http.client
import sys
import threading


def ask(paths, again):
    connection = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]))
    for path in paths:
        connection.request("GET", path)
        connection.getresponse().read()
        if again:
            connection.close()


clients = [threading.Thread(target=ask, args=(["/hello"] * 200, False)) for _ in range(4)]
clients.append(threading.Thread(target=ask, args=((["/hello"] * 5 + ["/report"]) * 8, True)))
for client in clients:
    client.start()
for client in clients:
    client.join()
END_PYTHON
kill $web
wait $web

(record blocked scenario_blocked_callback)
(record timer scenario_timer_late)
(record clock scenario_libev_stale_clock)
(record helper scenario_glib_helper)
(record check scenario_glib_check)
(record wakes scenario_libev_timer_storm)
(export DIAL9_RING_MB=1 && record mistakes mistakes)
wait $growth
wait $hang || :
"$build/core/dial9" recover hang >/dev/null

for name in $names; do
	"$build/core/dial9" symbolize "$name" >/dev/null
	mkdir -p "$dir/$name"
	# Segments are rows of compressed frames, and so are two of them, one behind the other.
	cat "$name"/*/trace.*.bin.zst >"$dir/$name/trace.0.bin.zst"
done
