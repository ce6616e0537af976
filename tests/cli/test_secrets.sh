#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# No word of a stack leaves the process that is not an address of code: not in the ring of a process that runs, nor in a
# segment, nor in anything that is made of one.  plant_secrets says where the words stand, find_secrets.py how they are
# looked for.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

command -v zstd >/dev/null || skip "zstd is not installed"
command -v python3 >/dev/null || skip "python3 is not installed"
[ "$(uname -m)" = x86_64 ] || skip "the program is written for x86-64"
$CC -O1 -fstack-protector-all -pthread -o plant "$top_srcdir/tests/cli/plant_secrets.c" -levent 2>errors ||
	skip "no libevent to build with: $(head -n 1 errors)"

# copy_ring PID FILE: what the process has mapped of its ring.
copy_ring() {
	sed -n 's|^\([0-9a-f]*-[0-9a-f]*\) .*[/:]dial9-.*|\1|p' "/proc/$1/maps" >ranges
	while read -r range; do
		cat "/proc/$1/map_files/$range"
	done <ranges >"$2"
}

# recorded NAME OPTION...: the trace NAME and the words words.NAME; its ring half way, and at its end, is among what is
# looked through.
recorded() {
	name=$1
	shift
	mkfifo "$name.half"
	"$dial9" record -q -o "$name" "$@" -- ./plant "words.$name" >"$name.half" 2>"$name.err" &
	recorder=$!
	read -r _ pid <"$name.half"
	copy_ring "$pid" "$name.ring"
	: >"words.$name.go"
	wait $recorder || echo "[exit status $?]"
	cat "$name.err"
}

# has FIELD: whether an event of the latest trace has it.
has() {
	grep -q "$1" "$name.events.jsonl" && echo "it has $1"
}

# Everything that is made of the trace.
made() {
	"$dial9" events "$name" >"$name.events.jsonl"
	"$dial9" events --format text "$name" >"$name.events.txt"
	"$dial9" info --json "$name" >"$name.info.json"
	"$dial9" report "$name" >"$name.report.txt"
	"$dial9" report --json "$name" >"$name.report.json"
	"$dial9" report --html -o "$name.page.html" "$name" 2>/dev/null
	"$dial9" export -o "$name.export.trc" "$name" 2>/dev/null
	"$dial9" export -f trc.gz -o "$name.export.gz" "$name" 2>/dev/null
	for kind in cpu off-cpu heap live idle; do
		for format in folded speedscope pprof; do
			"$dial9" export --kind $kind -f $format -o "$name.$kind.$format" "$name" 2>>errors || rm -f "$name.$kind.$format"
		done
		"$dial9" export --kind $kind -f pprof --raw-addresses -o "$name.$kind.raw" "$name" 2>>errors || rm -f "$name.$kind.raw"
		"$dial9" flamegraph --kind $kind -o "$name.$kind.svg" "$name" 2>>errors || rm -f "$name.$kind.svg"
	done
	"$dial9" query -o "$name.sqlite" "$name" 2>>errors || rm -f "$name.sqlite"
}

# What a browser gets.
served() {
	: >address
	"$dial9" serve "$name" >address 2>/dev/null &
	server=$!
	trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
	until url=$(cat address) && [ -n "$url" ]; do
		kill -0 $server || return
	done
	for path in segments report page callbacks stacks; do
		python3 "$top_srcdir/tests/cli/ask_http.py" "$url" --path "/TOKEN/api/$path" --save "$name.served.$path" >/dev/null
	done
	kill $server
	wait $server
}

search() {
	find "$name" -type f -size +0 >files
	# shellcheck disable=SC2046 # names of our own
	python3 "$top_srcdir/tests/cli/find_secrets.py" "words.$name" $(cat files) "$name.ring" "$name".*.*
}

say "by timers, off the CPU, allocations, calls that block, idle tasks"
recorded all --cpu 999 --cpu-threads all --off-cpu --memory=65536 --task-dumps=1
made
served
for event in CpuSampleEvent BlockingCallEvent TaskDumpEvent AllocEvent '"source":1' '"holder_stack":\["0x'; do
	has "$event"
done
search

say "without loops"
recorded profile --cpu 999 --profile-only
made
has CpuSampleEvent
search

# Where the kernel permits none of these there are no samples, and nothing else is different.
for backend in perf perf-thread; do
	say "by $backend"
	recorded $backend --cpu 999 --cpu-backend $backend --off-cpu
	made
	search
done

finish ''
