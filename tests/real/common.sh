# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Shared by the tests that record programs from Debian and compare with counts that share nothing
# with dial9.  Sourced with `set -eu`, top_srcdir and top_builddir set.
#
# A uprobe belongs to an inode, so the program and its loop library are run from a private copy.

dial9=$top_builddir/core/dial9
helpers=$top_builddir/tests/real
counts=$top_srcdir/tests/real/trace_counts.mjs
dir=$(mktemp -d)
trap 'stop_all; rm -rf "$dir"' EXIT
pids=''

stop_all() {
	for pid in $pids; do
		kill "$pid" 2>/dev/null || true
	done
}

skip() {
	echo "$1"
	exit 77
}

fail() {
	echo "FAILED: $1"
	exit 1
}

[ "${D9_LEAVE_OUT:-}" != real ] || skip "left out by D9_LEAVE_OUT: it ran before"

# Ports are below those that the kernel gives to clients, and of each test its own: 18000 test_examples,
# 20000 test_kill, 30000 test_triggers, 22000 test_memcached, 24000 test_nghttpd, 26000 test_hitch, 28000 test_memory.

need_node() {
	"$top_srcdir/tests/support/has_node.sh" || skip "there is no node, or one older than 18"
}

# need PROGRAM...: skip, and say why, where one is missing or the build cannot be preloaded.
need() {
	for program; do
		command -v "$program" >/dev/null || skip "$program is not installed"
		[ "$program" != node ] || need_node
	done
}

# equal WHAT A B
equal() {
	[ "$2" = "$3" ] || fail "$1: $2 and $3"
	echo "equal: $1: $2"
}

# Private copies of the libevent or libev that the program FILE uses.
private_loop() {
	mkdir -p "$dir/private"
	ldd "$1" | awk '$1 ~ /^libev(ent|\.)/ { print $3 }' | while read -r lib; do
		cp -L "$lib" "$dir/private/"
	done
}

# A private copy of PROGRAM, too; prints its path.
private_copy() {
	private_loop "$(command -v "$1")"
	cp -L "$(command -v "$1")" "$dir/private/"
	echo "$dir/private/$(basename "$1")"
}

# Waits that may block, and waits that only look, of all processes that counted themselves.
waits() {
	for file in "$dir"/waits.*; do
		od -An -v -tu8 "$file"
	done | awk '{ blocking += $1; looking += $2 } END { print blocking + 0, looking + 0 }'
}

# record TRACE CMD...: under dial9 record, with the waits counted by a library of our own.  With
# $offsets, also under uprobe_count, whose counts go to $dir/uprobes.
offsets=''
record() {
	trace=$1
	shift
	rm -f "$dir"/waits.*
	# One word per place to count is meant.
	# shellcheck disable=SC2086
	exec env "LD_LIBRARY_PATH=$dir/private" "COUNT_WAITS=$dir/waits" \
		"LD_PRELOAD=$helpers/.libs/count_waits.so" \
		${offsets:+"$helpers/uprobe_count" "$dir/uprobes" $offsets --} \
		"$dial9" record --quiet -o "$trace" -- "$@"
}

# Skip where the kernel lets nobody count at $offsets.
need_uprobes() {
	status=0
	# One word per place is meant.
	# shellcheck disable=SC2086
	"$helpers/uprobe_count" "$dir/none" $offsets -- true 2>/dev/null || status=$?
	[ $status != 77 ] || skip "the kernel offers no uprobes, or not to us"
}

# run_counted FUNCTION: `FUNCTION TRACE` runs a program under record.  A run in $dir/first tells which callbacks there are, the
# one in $dir/second is counted at their places; it is repeated if it comes to one that was not known, as some runs do.
run_counted() {
	"$1" "$dir/first"
	offsets=$(node "$counts" offsets "$dir/first".plain/*.trc | tr '\n' ' ')
	[ -n "$offsets" ] || fail "no callback was recorded"
	need_uprobes
	for again in 1 2 3 4 5; do
		"$1" "$dir/second"
		# Two words make a place.
		# shellcheck disable=SC2086
		printf '%s %s\n' $offsets >"$dir/known"
		more=$(node "$counts" offsets "$dir/second".plain/*.trc | grep -vxFf "$dir/known" | tr '\n' ' ') || true
		[ -n "$more" ] || return 0
		echo "run $again came to $more, too"
		offsets="$offsets$more"
		rm -rf "$dir"/second*
	done
	fail "each run comes to another callback"
}

# counted TRACE [N]: polls of each callback equal the uprobes (N of which the program is known to
# call itself), parks equal the waits that may block.
counted() {
	node "$counts" compare "$dir/uprobes" "${2:-0}" "$1".plain/*.trc ||
		fail "polls differ from the uprobes"
	set -- "$1" $(waits) $(node "$counts" counts "$1".plain/*.trc)
	equal "parks and waits that may block" "$5" "$2"
	equal "polls, report and trace" "$(report "$1" 'r.callbacks.filter((c) => c.kind !== "span")
		.reduce((n, c) => n + c.polls, 0)')" "$4"
	equal "parks, report and trace" "$(report "$1" 'r.workers.reduce((n, w) => n + w.parks, 0)')" "$5"
}

# until_it_catches_usr1 PID: bit 9 of the mask.
until_it_catches_usr1() {
	until grep -q 'SigCgt:.*[2367abef]..$' "/proc/$1/status"; do
		kill -0 "$1" || fail "it ended before it caught SIGUSR1"
		sleep 0.02
	done
}

# Recorders of TRACE that live.
living() {
	"$dial9" status -d "$1" 2>/dev/null | awk '$1 ~ /^[0-9]+$/ && $3 != "dead"'
}

# The time of each loop in the JSON report FILE is divided completely.
accounts() {
	grep -q '"account":' "$1" && command -v python3 >/dev/null || return 0
	python3 "$top_srcdir/tests/cli/check_accounts.py" "$1" || fail "an account of a loop is wrong"
}

# A plain file for each process of TRACE, for the decoder in JavaScript; the producer's rules hold,
# of what was recovered, too, and each loop's account.
plain() {
	# Daemons end a little later than what started them; until then there may be no segment of theirs, even.
	i=0
	while [ -n "$(living "$1")" ] && [ $i -lt 200 ]; do
		i=$((i + 1))
		sleep 0.05
	done
	mkdir -p "$1.plain"
	for process in "$1"/*/; do
		trc=$1.plain/$(basename "$process").trc
		# Killed before its flush thread had described it: only what was in its chunks is there.
		"$dial9" info "$process" | grep -q 'dial9-c.version' || continue
		"$dial9" export --format trc -o "$trc" "$process"
		node "$top_srcdir/tests/toolkit/trace_rules.mjs" "$trc" ||
			fail "$process breaks the producer's rules"
		"$dial9" report --json "$process" >"$dir/report.json" || :
		accounts "$dir/report.json"
	done
}

# Value at the dotted PATH of the report of TRACE, or of an expression in `r`.
report() {
	"$dial9" report --json "$1" >"$dir/report.json" || :
	accounts "$dir/report.json"
	node -e '
		const r = JSON.parse(require("fs").readFileSync(0, "utf8"));
		console.log(eval(process.argv[1]));' "$2" <"$dir/report.json"
}

# promise_holds TRACE TWIN AGAIN: what the first finding says of waits without it is what the innocent twin shows.  One
# of the two may have been held up by the machine for longer than either tells: AGAIN records both, at most twice.
promise_holds() {
	for again in "$3" "$3" false; do
		"$dial9" report --json "$1" >"$1.json" || true
		"$dial9" report --json "$2" >"$2.json" || true
		! node "$top_srcdir/tests/real/check_gain.mjs" "$1.json" "$2.json" || return 0
		"$dial9" report "$1" | head -12
		$again || fail "$1: the gain that is promised is not what the twin shows"
	done
}

# ---- GLib ----

# Set $offsets to the places in a private copy of libglib where it calls the dispatch function of a
# source: what comes before the addresses to which that returns.
private_glib() {
	mkdir -p "$dir/private"
	glib=$(ldconfig -p | sed -n 's/.*libglib-2\.0\.so\.0 .*=> \(.*\)/\1/p' | head -n 1)
	[ -n "$glib" ] || skip "the loader knows no libglib-2.0.so.0"
	cp -L "$glib" "$dir/private/libglib-2.0.so.0"
	glib=$dir/private/libglib-2.0.so.0
	returns=$(LD_LIBRARY_PATH=$dir/private "$helpers/dispatch_places" | tr '\n' ' ')
	# One word per address is meant.
	# shellcheck disable=SC2046
	set -- $(objdump -d --no-show-raw-insn "$glib" | awk -v returns="$returns" '
		BEGIN { for (i = split(returns, each); i > 0; i--) after[each[i] ":"] }
		$1 in after && before ~ /call/ { split(before, part, ":"); print part[1] }
		{ before = $0 }')
	[ $# -gt 0 ] || fail "no calls of dispatch functions in libglib, which return to $returns"
	offsets=$(node "$counts" place "$glib" "$@" | tr '\n' ' ')
	need_uprobes
}

# dispatched TRACE [PROCESSES]: all polls equal the uprobes at those places, less the three dispatches
# of the adapter's self-test in each process that GLib is in.
dispatched() {
	# Two counters in two lines are meant.
	# shellcheck disable=SC2046
	set -- "$1" "${2:-1}" $(node "$counts" counts "$1".plain/*.trc) \
		"$(awk '{ sum += $3 } END { print sum }' "$dir/uprobes")"
	equal "dispatches, uprobes and trace" $(($5 - 3 * $2)) "$3"
}
