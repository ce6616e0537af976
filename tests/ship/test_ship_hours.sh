#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What the segments of an hour say together is stored once the hour is over, as the sum of what each says alone; one that comes
# late makes a bigger marker; what the recorder evicted is told once.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"
start_store

# segment N SECONDS MS EVICTED: of the process abcd-1.  1790000000 s are 14:13:20.
segment() {
	"$make_trace" hour zstd "t/abcd-1/trace.$1.bin.zst" abcd-1 "$2" "$3" "$4"
}

markers() {
	(cd "$stored/p/hours" && find . -type f -path "${1:-*}" | sort)
}

mkdir -m 700 t t/abcd-1 alone
: >t/abcd-1/.lock
segment 0 0 5 ''
segment 1 60 40 ''
segment 4 2760 7 2-3
segment 5 3000 3 2-3

# ---- while the process lives, an hour that is over is told, and only that
exec 8<t/abcd-1/.lock
flock 8
ship t --once
equal "status" $status 0
says '4 segments stored' '2 hours' # that hour is long over
equal "hours" "$(markers | sed 's/[0-9]*\.[0-9]*\.[0-9]*$/BYTES/;s,demo/[^/]*/,demo/HOST/,')" "./2026-09-21/14/demo/HOST/abcd-1.3.BYTES
./2026-09-21/15/demo/HOST/abcd-1.1.BYTES"
equal "figures" "$(markers '*/14/*' | sed 's/.*abcd-1\.3\.[0-9]*\.//')" 40.2
grep -q '^missing 2-3 1790002760$' t/abcd-1/.shipped || fail "$(cat t/abcd-1/.shipped)"
equal "gaps" "$(grep -c ^missing t/abcd-1/.shipped)" 1

# ---- it says what its segments say, as they are stored
for i in 0 1 4; do
	"$dial9" serve --summary "$(find "$stored" -name "*-$i.bin.zst")" >alone/$i.json
done
MARKER=$stored/p/hours/$(markers '*/14/*') node -e '
	const fs = require("fs"), assert = require("assert");
	const hour = JSON.parse(fs.readFileSync(process.env.MARKER));
	const parts = [0, 1, 4].map((i) => JSON.parse(fs.readFileSync(`alone/${i}.json`)));
	const sum = (name) => parts.reduce((n, part) => n + part[name], 0);
	assert.equal(hour.hour, "2026-09-21T14");
	assert.equal(hour.segments, 3);
	assert.equal(hour.summarised, 3);
	assert.equal(hour.indexes, "0-1,4");
	assert.equal(hour.missing, "2-3");
	assert.equal(hour.boot_id, "abcd-1");
	for (const name of ["events", "lost", "busy_ns", "samples"]) assert.equal(hour[name], sum(name), name);
	assert.ok(hour.samples > 0 && hour.busy_ns > 0);
	assert.equal(hour.first_ns, parts[0].first_ns);
	assert.equal(hour.wall_ns, parts[0].wall_ns);
	assert.equal(hour.last_ns, parts[2].last_ns);
	for (const list of ["callbacks", "spans"]) {
		assert.equal(hour[list].length, 1, list);
		const one = hour[list][0], ones = parts.map((part) => part[list][0]);
		assert.equal(one.name, ones[0].name);
		assert.equal(one.calls, 6);
		assert.equal(one.total_ns, ones.reduce((n, o) => n + o.total_ns, 0));
		assert.equal(one.longest_ns, 40000000);
		assert.match(one.segment, /time=1414\/.*-1\.bin\.zst$/);
		assert.equal(one.durations.filter((_, i) => i % 2).reduce((n, x) => n + x), 6);
	}
	assert.equal(hour.callbacks[0].at_ns, parts[1].callbacks[0].at_ns);
	assert.deepEqual(hour.nodes.filter((_, i) => i % 4 === 3), parts[0].nodes.filter((_, i) => i % 4 === 3));
	assert.equal(hour.nodes.filter((_, i) => i % 4 === 2).reduce((n, x) => n + x), 6);
	assert.equal(hour.bin_ns, 1e10);
	const bins = hour.bins, busy = bins.filter((_, i) => i % 2).reduce((n, x) => n + x);
	assert.ok(Math.abs(busy - hour.busy_ns) < 1000, `${busy} ${hour.busy_ns}`);
	assert.equal(Math.max(...bins.filter((_, i) => i % 2 === 0)), 40000000);
'

# ---- what is missing comes first
"$dial9" ship t --status >said
says 't/abcd-1: 2 missing (2-3), evicted before they were stored; 4 stored, '
cat t/abcd-1/.shipped >>t/abcd-1/.shipped.twice
cat t/abcd-1/.shipped.twice >>t/abcd-1/.shipped
rm t/abcd-1/.shipped.twice
"$dial9" ship t --status --json >said
says '"missing": 2,' '"missing_indexes": "2-3"' '"stored": 4,'

# ---- nothing new: nothing is stored again
ship t --once
says '0 segments stored'
equal "markers" "$(markers | wc -l | tr -d ' ')" 2

# ---- a late one
segment 6 120 90 2-3
ship t --once
says '1 segment stored' '1 hour'
equal "markers of that hour" "$(markers '*/14/*' | sed 's/.*abcd-1\.\([0-9]*\)\.[0-9]*\./\1 /')" "3 40.2
4 90.2"
equal "gaps are told once, and once more above" "$(grep -c ^missing t/abcd-1/.shipped)" 2

# ---- the hour that runs is told when the process has ended
now=$(($(date +%s) - 1790000000))
segment 7 $now 2 ''
ship t --once
equal "of the running hour" "$(markers | wc -l | tr -d ' ')" 3
exec 8<&-
ship t --once
says '1 hour'
equal "of the running hour, after its end" "$(markers | wc -l | tr -d ' ')" 4

# ---- what a stage takes out stands in no hour, and a file that is no hour's harms nothing
mkdir -m 700 t/efgh-2
"$make_trace" hour zstd t/efgh-2/trace.0.bin.zst efgh-2 0 5 ''
echo '{"segments": "many", "callbacks": 7, "nodes": [1, 2], "bins": {}}' >t/efgh-2/.hour-2026-09-21T14
ship t --once --stage scrub
equal "status" $status 0
hour=$stored/p/hours/$(markers '*/efgh-2.*')
grep -q '"name":"span-' "$hour" || fail "$(cat "$hour")"
! grep -q request "$hour" || fail "a name was kept: $(cat "$hour")"

# ---- what is removed unsent is missing in the hour in which it was sealed, which is told again
mkdir -m 700 m m/qrst-5
: >m/qrst-5/.lock
"$make_trace" hour zstd m/qrst-5/trace.0.bin.zst qrst-5 0 5 ''
ship m --once
equal "told" "$(markers '*/qrst-5.*' | sed 's/.*\.//')" 0
"$make_trace" hour zstd m/qrst-5/trace.1.bin.zst qrst-5 60 5 ''
touch -d @1790000060 m/qrst-5/trace.1.bin.zst
faults '[{ "kind": "status", "status": 503, "code": "SlowDown", "times": 0 }]'
: >removed
"$dial9" ship m --every 50ms --max-disk 1 --to s3://bucket/p --endpoint "$address" >removed 2>&1 9>&- &
shipper=$!
until grep -q 'removed unsent' removed; do
	kill -0 $shipper || fail "$(cat removed)"
	sleep 0.05
done
kill $shipper
wait $shipper || true
equal "the list" "$(grep ^missing m/qrst-5/.shipped)" 'missing 1 1790000060'
faults '[]'
ship m --once
equal "told again" "$(markers '*/qrst-5.*' | sed 's/.*\.//' | sort | tr '\n' ' ')" '0 1 '

# ---- raw, and files by hand: no hours
mkdir -m 700 t/ijkl-3
"$make_trace" hour zstd t/ijkl-3/trace.0.bin.zst ijkl-3 0 5 ''
ship t --once --raw
equal "markers of raw segments" "$(markers '*/ijkl-3.*' | wc -l | tr -d ' ')" 0

# ---- a list of gaps of any length that a recorder writes is told
list=$(i=10 && while [ $i -lt 26 ]; do
	printf '%s%s00000000000000000-%s00000000000000005' "${comma-}" $i $i
	comma=, i=$((i + 1))
done)
mkdir -m 700 t/mnop-4
"$make_trace" hour zstd t/mnop-4/trace.0.bin.zst mnop-4 0 5 "$list"
ship t --once
grep -qF "\"$list\"" "$work"/s3/.s3d/bucket/*.json || fail "gaps are not told: $(cat said)"
equal "missing in that hour" "$(markers '*/mnop-4.*' | sed 's/.*\.//')" 96

# ---- and it is what dial9 serve shows of the bucket
"$dial9" serve --bucket bucket --prefix p --endpoint "$address" >url 2>served 9>&- &
server=$!
# shellcheck disable=SC2064 # this server
trap "kill $server 2>/dev/null || true; rm -rf $work" EXIT
until [ -s url ]; do
	kill -0 $server || fail "no server: $(cat served)"
	sleep 0.05
done
URL=$(cat url) node -e '
	const assert = require("assert"), scope = "from_ms=1789999200000&to_ms=1790002799999&p=demo";
	const ask = async (what) => (await fetch(`${process.env.URL}api/${what}?${scope}`)).json();
	const wait = async (what, good) => {
		for (;;) {
			const answer = await ask(what);
			if (good(answer)) return answer;
			await new Promise((done) => setTimeout(done, 50));
		}
	};
	(async () => {
		const map = await wait("map", (m) => !m.place.listing && m.segments.length);
		const hour = map.segments.find((one) => one.segments === 4);
		assert.equal(hour.longest_ns, 90000000);
		assert.equal(hour.missing, 2);
		assert.equal(map.place.gets, 0);
		const callbacks = await wait("callbacks", (c) => c.coverage.segments && c.coverage.read === c.coverage.segments);
		assert.ok(callbacks.callbacks.some((one) => one.longest_ns === 90000000 && /-6\.bin\.zst$/.test(one.segment)));
		const spans = await ask("spans");
		assert.ok(spans.spans.some((one) => one.name === "request" && one.longest_ns === 90000000));
	})().catch((error) => { console.log(error); process.exit(1); });
'
kill $server
stop_store
