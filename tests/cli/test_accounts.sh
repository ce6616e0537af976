#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each loop has a line on the first screen that tells to whom its time belongs; in JSON all of it is divided, in every
# trace that there is.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

find_bad=$(cd "$top_builddir" && pwd)/tests/cli/find_bad_text

# accounts REPORT-ARGUMENTS...: the lines between what is known of the data, and the first finding.
accounts() {
	"$dial9" report --color never "$@" | awk '/^!|^nothing/ { exit } told; /told$/ { told = 1 }'
}

say "one loop, two, three, four, five: the worst three, and how many more there are"
for loops in 1 2 3 4 5; do
	"$make_trace" loops plain loops$loops.bin abcd-11 $loops demo+0x1a2b0
	echo "$loops:"
	accounts loops$loops.bin
done

say "no wider than the screen, and the worst finding has its line below them"
for width in 40 80 200; do
	accounts --width $width loops5.bin | sed "s/.\{$((width + 1)),\}/TOO WIDE: &/"
	for loops in 1 5; do
		"$dial9" report --width $width loops$loops.bin >out
		grep '^!' out
		[ "$(wc -l <out)" -le 22 ] || echo "$(wc -l <out) lines"
	done
done

say "what a loop at its limit does most, without what else it does; of small reads how small"
for bytes in 1 100; do
	"$make_trace" limit plain limit.bin $bytes
	"$dial9" report --color never limit.bin | sed -n "/awake/,+1p"
done

say "where the largest owner of a loop at its limit was found, in JSON as well"
saturated=$top_srcdir/tests/cli/screens/saturated.bin.zst
XDG_CACHE_HOME=$PWD "$dial9" report --color never --width 80 "$saturated" | grep '^  at:'
XDG_CACHE_HOME=$PWD "$dial9" report --json "$saturated" | sed -n '/"account"/,/"kernel_waits"/s/.*"on_cpu": /account: /p'
XDG_CACHE_HOME=$PWD "$dial9" report --json loops1.bin | sed -n '/"account"/,/"kernel_waits"/s/.*"on_cpu": /account: /p'

say "several processes: each loop with its own"
mkdir several
"$make_trace" loops plain several/a.bin abcd-11 2 demo+0x1a2b0
"$make_trace" loops plain several/b.bin efgh-22 2 'web+0x300 @ web+0x310'
accounts several
accounts --width 40 several

say "how long the machine kept loops waiting is the process's that waited longest"
"$make_trace" loops plain several/a.bin abcd-11 2 demo+0x1a2b0 6000000
"$make_trace" loops plain several/b.bin efgh-22 2 'web+0x300 @ web+0x310' 1500000
"$dial9" report --width 200 several | grep '^machine'
"$make_trace" loops plain several/a.bin abcd-11 2 demo+0x1a2b0 1500000
"$make_trace" loops plain several/b.bin efgh-22 2 'web+0x300 @ web+0x310' 6000000
"$dial9" report --width 200 several | grep '^machine'

say "a loop that never waits, and one of which nothing is known"
"$make_trace" process plain busy.bin abcd-11 3
accounts busy.bin
"$make_trace" types plain types.bin
"$dial9" report types.bin | grep awake

say "a callback that sleeps is told, with what it sleeps in"
"$dial9" report loops1.bin | sed -n '/^!/,/^details/p'

say "names with bytes that no terminal should see"
hostile=$(printf 'o\342\200\256\302\233\033[35m\tx')
"$make_trace" loops plain hostile.bin abcd-11 5 "$hostile"
for width in 40 80 200; do
	"$dial9" report --width $width hostile.bin >out
	"$find_bad" out
	LC_ALL=C.UTF-8 "$dial9" report --width $width hostile.bin >out
	"$find_bad" out
done
accounts hostile.bin

say "all time has a place, and what was awake has an owner"
if command -v python3 >/dev/null; then
	for kind in life late endless wild odd timeless repeats newest rows small two cut; do
		"$make_trace" $kind plain $kind.bin
	done
	"$make_trace" held plain held.bin 9000000
	"$make_trace" many plain many.bin 3
	"$make_trace" callbacks plain callbacks.bin 2000
	for phase in check prepare none; do
		"$make_trace" outside plain outside.$phase.bin "$(echo $phase | sed s/none//)"
	done
	for trace in *.bin several "$top_srcdir"/core/demo/*/*.zst; do
		[ "$trace" != types.bin ] || continue
		"$dial9" report --json "$trace" >report.json 2>/dev/null
		python3 "$top_srcdir/tests/cli/check_accounts.py" report.json 2>&1 || echo "of $trace"
	done
fi

finish ''
