#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$make_trace" small plain small.bin
"$make_trace" two zstd two.bin.zst

say "a slow callback, and a hook that is missing"
run report small.bin

say "lost events come first; narrow"
run report --width 60 two.bin.zst

say "nothing on it that a loop did"
"$make_trace" types plain types.bin
run report types.bin

say "cut in the middle of a frame: what was read is used, and said"
head -c 880 small.bin >cut.bin
run report cut.bin >out 2>err
head -12 out
cat err

say "damaged"
{ cat small.bin; printf '\377\377\377\377'; } >damaged.bin
run report damaged.bin >out 2>err
head -12 out
tail -1 out
cat err

say "JSON is JSON, and colours are for terminals"
"$dial9" report --json two.bin.zst >two.json
if command -v python3 >/dev/null; then
	python3 -c 'import json; json.load(open("two.json"))' || echo "not JSON"
fi
grep -c '"check"' two.json
"$dial9" report small.bin | grep -c "$(printf '\033')"
"$dial9" report --color=always small.bin | grep -c "$(printf '\033')"
TERM=xterm "$dial9" report --color=never small.bin | grep -c "$(printf '\033')"

say "NO_COLOR, and colours all the same if they are asked for"
NO_COLOR=1 TERM=xterm script -qec "$dial9 report small.bin" /dev/null | grep -c "$(printf '\033')"
NO_COLOR=1 "$dial9" report --color=always small.bin | grep -c "$(printf '\033')"

say "ten thousand callbacks: a thousand findings take a screen; names of Asia keep the columns"
"$make_trace" callbacks zstd callbacks.bin.zst 10000
LC_ALL=C.UTF-8 "$dial9" report callbacks.bin.zst >callbacks.out
sed -n '/^Findings/,/^Workers/p' callbacks.out | grep -vc '^$'
sed -n '/ more of /p; /^Longest calls/,/^$/p' callbacks.out | head -5
awk '/^Callbacks by/ { n = 3 } n && n-- { print }' callbacks.out
LC_ALL=C.UTF-8 "$dial9" report --top 12 --width 200 callbacks.bin.zst | sed -n '/^Findings/,/ more of /p'

say "out of memory: said in a line, and no report"
if [ "$SANITIZER" = no ]; then
	"$make_trace" callbacks zstd more.bin.zst 40000
	(
		# shellcheck disable=SC3045 # every shell that is /bin/sh here has it
		ulimit -v 80000
		run report --no-symbols more.bin.zst
	)
else
	sed '1,/^# out of memory/d; /^$/,$d' "$expected"
fi

say "a call that began at no time has no length"
"$make_trace" timeless plain timeless.bin
"$dial9" report --json timeless.bin | grep -e '"total_events"' -e '"total_ns"' -e '"check"'

say "a call that got no CPU: the table says so, and what that is"
for ns in 9000000 15000000; do
	"$make_trace" held plain held.bin $ns
	"$dial9" report held.bin | sed -n '/^Longest calls/,/^$/p'
done

say "standard input"
"$dial9" report - <small.bin >by_input
"$dial9" report small.bin >by_path
cmp by_input by_path

say "usage"
run report
run report --top 0 small.bin
run report --width 10 small.bin
run report --color=red small.bin
run report missing

finish ''
