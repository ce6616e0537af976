#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$make_trace" small plain small.bin
"$make_trace" two zstd two.bin.zst

say "the first screen: a slow callback, and a hook that is missing; what is known of the data comes first"
run report small.bin

say "narrow: only commands may be wider than the screen"
run report --width 40 two.bin.zst | sed '/dial9 report/!s/.\{41,\}/TOO WIDE: &/'
run report -v --width 40 two.bin.zst | grep '.\{41,\}'

say "wide"
run report --width 200 two.bin.zst

say "all of it"
run report -v small.bin

say "lost events come first; narrow"
run report -v --width 60 two.bin.zst

say "nothing on it that a loop did"
"$make_trace" types plain types.bin
run report types.bin
run report -v types.bin

say "nothing wrong: a line, and the table"
"$make_trace" process plain fine.bin abcd-11 3
run report fine.bin

say "many findings, and a thousand: still a screen of 24 lines, of which the prompts have two"
"$make_trace" callbacks zstd callbacks.bin.zst 10000
"$dial9" report --width 40 callbacks.bin.zst | sed '/dial9 report/d; s/.\{41,\}/TOO WIDE: &/' | head -n 3
for width in 40 80 200; do
	for trace in small.bin two.bin.zst types.bin callbacks.bin.zst; do
		lines=$("$dial9" report --width $width $trace | awk -v width=$width '
			{ n += length($0) > width ? int((length($0) + width - 1) / width) : 1 } END { print n }')
		[ "$lines" -le 22 ] || echo "$trace at $width columns: $lines lines"
	done
done

say "one finding, with its evidence; one that is not there"
run report --finding 2 small.bin
run report --finding 3 small.bin
run report --finding 1 fine.bin
run report --finding 0 small.bin

say "parts by name; one that is empty, and one that there is not"
run report --section workers --section timers small.bin
run report --section spans small.bin
run report --section data small.bin
run report --section nonsense small.bin

say "the exit status tells of findings if it is asked to"
run report --exit-code small.bin >out
tail -n 1 out
run report --exit-code fine.bin >out
grep status out
run report --exit-code --json small.bin >out
tail -n 1 out

say "the commands it names work, of a path with spaces, too"
mkdir "a b"
"$make_trace" process plain "a b/it's.bin" efgh-22 30
"$dial9" report "a b/it's.bin" | sed -n 's/^details: *//p; s/^         *\(dial9 \)/\1/p' >commands
cat commands
sed "s|^dial9|$dial9|" commands | while read -r line; do
	sh -c "$line" >/dev/null || echo "failed: $line"
done

say "cut in the middle of a frame: what was read is used, and said"
head -c 880 small.bin >cut.bin
run report cut.bin >out 2>err
head -4 out
cat err

say "a segment that was cut before its first event, in all commands"
mkdir unread
"$make_trace" small plain unread/trace.0.bin
"$make_trace" small plain whole.bin
"$make_trace" small zstd whole.bin.zst
"$make_trace" small gzip whole.bin.gz
read_cut() {
	for command in "report --no-pager" "info" "events" "query" "export"; do
		case $command in
		query) set -- unread 'SELECT count(*) AS cut FROM segments WHERE error LIKE "%ends too early"' ;;
		export) set -- -o cut.trc unread ;;
		*) set -- unread ;;
		esac
		# The commands are several words.
		# shellcheck disable=SC2086
		"$dial9" $command "$@" >out 2>err
		echo "$command: exit status $?: $(grep unread err)"
		case $command in
		report*) sed -n 1p out; grep -A 1 "before the first event" out ;;
		info) grep -A 2 trace.1 out | sed -n '3s/.*long, //p' ;;
		query) tail -n 1 out ;;
		esac
	done
	"$dial9" report -v unread 2>&1 | sed -n '/data is complete/p; /^1 /,/what to do/p'
	"$dial9" report --json unread 2>err | grep -A 10 'trace\.1' | grep 'truncated\|error'
}
head -c 300 whole.bin.zst >unread/trace.1.bin.zst
read_cut
rm unread/trace.1.bin.zst
for cut in bin:0 bin:3 bin.zst:0 bin.zst:2 bin.gz:1 bin.gz:40; do
	head -c "${cut#*:}" "whole.${cut%:*}" >"unread/trace.1.${cut%:*}"
	echo "$cut"
	"$dial9" report unread 2>&1 >out | sed 's/.*trace/trace/'
	head -n 1 out
	rm "unread/trace.1.${cut%:*}"
done
: >unread/trace.1.bin.zst.active
"$dial9" report unread >out
head -n 1 out

say "damaged"
{ cat small.bin; printf '\377\377\377\377'; } >damaged.bin
run report damaged.bin >out 2>err
head -4 out
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
LC_ALL=C.UTF-8 "$dial9" report -v callbacks.bin.zst >callbacks.out
sed -n '/^Findings/,/^Workers/p' callbacks.out | grep -vc '^$'
sed -n '/ more of /p; /^Longest calls/,/^$/p' callbacks.out | head -5
awk '/^Callbacks by/ { n = 3 } n && n-- { print }' callbacks.out
LC_ALL=C.UTF-8 "$dial9" report -v --top 12 --width 200 callbacks.bin.zst | sed -n '/^Findings/,/ more of /p'

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
	"$dial9" report -v held.bin | sed -n '/^Longest calls/,/^$/p'
done

say "a loop that is busy outside of its callbacks: its account says where"
for phase in check prepare ''; do
	"$make_trace" outside plain outside.bin "$phase"
	COLUMNS=80 "$dial9" report outside.bin | sed -n 2p
done

say "standard input"
"$dial9" report -v - <small.bin >by_input
"$dial9" report -v small.bin >by_path
cmp by_input by_path

say "usage"
run report
run report --top 0 small.bin
run report --width 10 small.bin
run report --color=red small.bin
run report --json --section data small.bin
run report missing

say "on a terminal: through the user's pager, unless there is none; one that cannot be run is no loss"
in_terminal() {
	script -qec "stty rows 24 cols 80; $*" /dev/null </dev/null | tr -d '\r' | head -n 1
}
export TERM=dumb
DIAL9_PAGER='sed s/^/paged:/' PAGER=false in_terminal "$dial9" report small.bin
PAGER='sed s/^/paged:/' in_terminal "$dial9" report small.bin
DIAL9_PAGER='sed s/^/paged:/' in_terminal "$dial9" report --no-pager small.bin
DIAL9_PAGER='' PAGER=false in_terminal "$dial9" report small.bin
DIAL9_PAGER="cat" in_terminal "$dial9" report small.bin
DIAL9_PAGER='exec 2>/dev/null; no-such-pager' in_terminal "$dial9" report small.bin
DIAL9_PAGER='true' in_terminal "$dial9" report small.bin
# shellcheck disable=SC2016 # the pager's shell expands it
DIAL9_PAGER='printf "%s\n" "$LESS"' in_terminal "$dial9" report small.bin
DIAL9_PAGER='sed s/^/paged:/' "$dial9" report small.bin | head -n 1

finish ''
