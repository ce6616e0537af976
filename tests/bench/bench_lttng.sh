#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run bench_lttng in an LTTng session of its own: no kernel tracing, per-user buffers of 8 times 1 MiB,
# which discard when they are full.  Debian: lttng-tools, liblttng-ust-dev.
#
#	bench_lttng.sh BENCH_LTTNG
set -eu

command -v lttng-sessiond >/dev/null || {
	echo "LTTng is not installed (Debian: lttng-tools liblttng-ust-dev): left out"
	exit 77
}
scratch=$(mktemp -d)
name=d9-bench-$$
finish() {
	lttng destroy "$name" >/dev/null 2>&1 || true
	[ ! -s "$scratch/pid" ] || kill "$(cat "$scratch/pid")" 2>/dev/null || true
	rm -rf "$scratch"
}
trap finish EXIT

# Our own daemon unless one runs.
lttng list >/dev/null 2>&1 || {
	lttng-sessiond --no-kernel --background --pidfile="$scratch/pid" >/dev/null 2>&1
}
{
	lttng create "$name" --output="$scratch/trace"
	lttng enable-channel --userspace --session="$name" --buffers-uid --discard \
		--subbuf-size=1M --num-subbuf=8 bench
	lttng enable-event --userspace --session="$name" --channel=bench 'd9_bench:*'
	lttng start "$name"
} >/dev/null
LTTNG_UST_REGISTER_TIMEOUT=-1 "$1"
lttng stop "$name" >"$scratch/log" 2>&1 || true
! grep -i discarded "$scratch/log" || echo "LTTng lost events: its figure is too good"
