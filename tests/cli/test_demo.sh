#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The demo trace: each recording has its problem, all together have every kind of event that there is, and so has one
# that the script makes from this build; it is served, and unpacked.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

demo=$top_srcdir/core/demo

# What is written only where something was lost in a way that a small recording does not come to.
# 65,536 sampled blocks at once: core/sample/test_alloc.  Triggers have a test of their own: cli/test_trigger, and so
# have programs that go round their loop by themselves, which no example does: adapters/check_between_rounds.  Nothing stops
# the examples (core/record/test_stopped), and results of I/O are newer than the demo (cli/test_io).
not_shown='MemoryProfileOverflowEvent|DumpTriggerEvent|LoopOutsideEvent|ProcessStoppedEvent|RunQueueEvent|BoundThreadEvent|TaskIoEvent'

# Names of all built-in events of the recorder and of the adapters.
grep -rhoE '"([A-Z][A-Za-z]+Event|SymbolTableEntry)"' --include='*.c' "$top_srcdir/core/ring/event_types.c" \
	"$top_srcdir/core/loop" "$top_srcdir/core/sample" "$top_srcdir/core/block" "$top_srcdir/adapters" |
	tr -d '"' | grep -vxE "$not_shown" | sort -u >kinds
printf '%s\n' SpanEnter: SpanExit: >>kinds

# lacks TRACE: the kinds that it has not.
lacks() {
	"$dial9" info --json "$1" | python3 -c '
import json, sys
have = json.load(sys.stdin)["events"]
for kind in open("kinds").read().split():
    if not any(name == kind or kind.endswith(":") and name.startswith(kind) for name in have):
        print("no", kind)'
	for source in 0 1; do
		"$dial9" events --no-symbols -e CpuSampleEvent "$1" | grep -q "\"source\":$source," || echo "no samples of source $source"
	done
}

say "every kind of event"
[ "$(wc -l <kinds)" -gt 35 ] || wc -l <kinds
lacks "$demo"

say "what is wrong with each, first"
for recording in "$demo"/*/; do
	printf '%s: ' "$(basename "$recording")"
	"$dial9" report --width 80 "$recording" | sed -n '/^!!* /p' | head -n 1
done
[ "$(du -sk "$demo" | cut -f 1)" -lt 600 ] || du -sk "$demo"

say "what the map of many segments says of each: its longest call, also one that never ended, and its problem"
for segment in "$demo"/*/*.zst; do
	printf '%s: ' "$(basename "$(dirname "$segment")")"
	"$dial9" serve --summary "$segment" | python3 -c '
import json, sys
said = json.load(sys.stdin)
longest = max(said["callbacks"], key=lambda one: one["longest_ns"])
assert longest["worker"] == 0 and longest["at_ns"] >= said["first_ns"]
print(longest["name"], longest["longest_ns"] // 1000, "us;", *(one["check"] for one in said["findings"]))'
done

say "it names no folder of whoever recorded it"
"$dial9" events --no-symbols -e ModuleEvent "$demo" | grep -o '"path":"/[^"]*"' | grep -vE '"/(usr|lib|lib64|tmp/dial9-demo)/' | sort -u
"$dial9" events --no-symbols -e SymbolTableEntry "$demo" | grep -oE '"source_file":"[^"]*/(adapters|core|examples)/[^"]*"' | sort -u

say "served"
if "$dial9" serve /nonexistent 2>&1 | grep -q 'built without libevent'; then
	echo '"name": "web/trace.0.bin.zst"'
else
	: >address
	"$dial9" serve --demo >address &
	server=$!
	trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
	until url=$(cat address) && [ -n "$url" ]; do kill -0 $server || break; done
	python3 "$top_srcdir/tests/cli/ask_http.py" "$url" --path /TOKEN/api/segments --save listing >status
	grep -o '"name": "web/[^"]*"' listing
	kill $server
	wait $server
fi
run serve --demo traces
run serve --demo --pid 1

say "unpacked"
run agents demo unpacked
diff -r "$demo" unpacked | grep -v ': demo.am$'
run agents demo unpacked
: >unpacked/web/trace.0.bin.zst
run agents demo unpacked

say "made again, from this build"
missing=
for program in http_service scenario_glib_helper scenario_libev_stale_clock ../adapters/.libs/libdial9-preload.so; do
	[ -e "$top_builddir/examples/$program" ] || missing=$program
done
if [ -z "$missing" ] && [ "$SANITIZER" = no ]; then
	"$top_srcdir/examples/make_demo.sh" made "$top_builddir" && lacks made
fi
finish ''
