#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The metrics service of examples/ with each of its planted regressions, by its run.sh: the report names what was planted,
# what the clients asked is what the trace counts, runs beside each other show the difference, and what was shipped to a
# store and fetched from there is reported as what is here.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

PATH=$PATH:/usr/sbin
need psql node setpriv
for programs in /usr/lib/postgresql/*/bin; do :; done
[ -x "$programs/initdb" ] || skip "PostgreSQL is not installed"
[ -x "$top_builddir/examples/metrics_service/service" ] || skip "built without libpq"
top_builddir=$(cd "$top_builddir" && pwd) top_srcdir=$(cd "$top_srcdir" && pwd)
dial9=$top_builddir/core/dial9
example=$top_srcdir/examples/metrics_service
ships=no
if [ -x "$top_builddir/core/dial9-store" ]; then
	ships=yes work=$dir/store
	mkdir "$work"
	# shellcheck source=tests/ship/store.sh
	. "$top_srcdir/tests/ship/store.sh"
	start_store
fi
cd "$dir"

# measure OUTPUT REGRESSION...: what run.sh says is in OUTPUT.said.
measure() {
	into=$1
	shift
	[ $ships = no ] || set -- --to s3://bucket/p --endpoint "$address" "$@"
	"$example/run.sh" --build "$top_builddir" --output "$into" --seconds 3 "$@" >"$into.said" 2>&1 9>&- ||
		fail "run.sh: $(tail -n 5 "$into.said")"
}

# counted RUN PATTERN: both numbers of that line of RUN.
counted() {
	sed -n "/^==== regression: $1 /,/^$/ s/^$2/\\1 \\2/p" traces.said
}

# finding RUN CHECK NAME: the sentence of that finding and where it blocks; nothing without it.
finding() {
	report "traces/$1" "(r.findings.find((f) => f.check === '$2' && f.name === '$3') ?? { message: '' }).message"
}

# same RUN: what readers take from the trace of RUN as it was recorded, and as it was fetched from the store.
same() {
	for trace in "traces/$1" "fetched/$1"; do
		report "$trace" 'JSON.stringify([r.workers.map((w) => [w.polls, w.parks, w.poll_ns]), r.findings.map((f) => [f.check, f.message, f.blocked]),
			r.callbacks.map((c) => [c.name, c.polls, c.total_ns]), r.spans.map((s) => [s.name, s.spans, s.sum_ns, s.idle_ns])])'
	done >both
	[ "$(sort -u both | wc -l)" = 1 ] || fail "$1 is reported differently from the store: $(cut -c 1-600 both)"
	echo "equal: the report of $1, from here and from the store"
}

"$example/run.sh" --help | grep -q '^usage: run.sh' || fail "--help has no usage"
status=0
"$example/run.sh" slow 2>said || status=$?
equal "status of a regression that there is not" $status 2

# How the machine was busy meanwhile may hide that calls grow.
for attempt in 1 2 3; do
	rm -rf traces
	measure traces none blocking growing lock
	[ -z "$(finding growing growing-calls on_latest_rows)" ] || break
	echo "run $attempt: not seen to grow"
done

for run in none blocking growing lock; do
	asked=$(counted $run 'requests: \([0-9]*\) stores, \([0-9]*\) reads')
	[ "${asked% *}" -gt 0 ] || fail "$run: nothing was asked"
	equal "$run: stores and reads, by the clients and by the service" "$asked" "$(counted $run '\([0-9]*\) stores, \([0-9]*\) reads.*')"
	equal "$run: none was refused or lost" "$(counted $run 'answers: [0-9]* ok, \([0-9]*\) refused, 0 others, \([0-9]*\) lost')" "0 0"
	equal "$run: stores and reads, by the clients and as spans" "$asked" "$(report traces/$run \
		"['store', 'latest'].map((name) => r.spans.find((s) => s.name === 'request: ' + name).spans).join(' ')")"
	equal "$run: their callbacks, and those of the answers" "$asked $asked" "$(report traces/$run "['on_store', 'on_latest', 'on_stored',
		'on_latest_rows'].map((name) => r.callbacks.filter((c) => c.name === name).reduce((n, c) => n + c.polls, 0)).join(' ')")"
	equal "$run: lost events" "$(report traces/$run 'r.trace.lost_events')" 0
done

[ -n "$(finding blocking blocked-callback on_store)" ] || fail "blocking: not named: $(report traces/blocking 'JSON.stringify(r.findings)')"
report traces/blocking "r.findings.find((f) => f.check === 'blocked-callback').blocked" | grep -q audit_store || fail "blocking: not where"
equal "blocking: most of its time, on_store is blocked" true \
	"$(report traces/blocking "(({ time }) => time.blocked_ns > time.total_ns / 2)(r.callbacks.find((c) => c.name === 'on_store'))")"
[ -n "$(finding growing growing-calls on_latest_rows)" ] || fail "growing: not named: $(report traces/growing 'JSON.stringify(r.findings)')"
equal "none: accused of either" "$(finding none blocked-callback on_store)$(finding none growing-calls on_latest_rows)" ""

# What stores wait for while it goes on is the transaction that holds their rows.
equal "lock: most of the time of stores lies in rebalances" 1 "$("$dial9" query -f csv traces/lock "
	SELECT sum(max(0, min(q.last_ns, h.last_ns) - max(q.first_ns, h.first_ns))) > 0.5 * (SELECT sum(last_ns - first_ns) FROM spans
		WHERE name = 'query: store samples') FROM spans q JOIN spans h ON h.name = 'rebalance totals' WHERE q.name = 'query: store samples'" | tail -n 1)"

# beside RUN NAME: it is among the first of what takes longer than without a regression, and more than twice as long.
beside() {
	awk -F, -v run="$1" -v name="$2" '$1 == run && $2 == name && $5 > 2 * $4 { found = 1 } END { exit !found }' beside.csv ||
		fail "beside none, $1 does not show $2: $(cat beside.csv)"
	echo "beside none, $1 shows $2"
}
"$dial9" query -f csv traces <"$example/compare.sql" >beside.csv
beside blocking on_store
beside blocking 'request: store'
beside growing on_latest_rows
beside growing 'query: all samples'
beside lock 'query: store samples'
beside lock 'rebalance totals'
grep -q '^==== each beside none ====$' traces.said || fail "run.sh does not compare"

if [ $ships = yes ]; then
	for run in none blocking growing lock; do
		key=$(cd "$stored" && find p -path "*/service=metrics-$run/*" -type f -name '*-0.bin.zst' | sort | tail -n 1)
		mkdir -p "fetched/$run"
		ship --link "$key"
		equal "$run: status of a link" $status 0
		URL=$(cat said) node -e 'fetch(process.env.URL).then(async (answer) => {
			if (answer.status !== 200) throw new Error(`status ${answer.status}`);
			process.stdout.write(Buffer.from(await answer.arrayBuffer()));
		})' >"fetched/$run/trace.0.bin.zst"
		same $run
	done
	stop_store
fi
