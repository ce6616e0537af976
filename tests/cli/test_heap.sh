#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What is told of allocations that a trace has: by site, live ones, places that leak, losses; and as profiles.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

make_samples=$top_builddir/tests/cli/make_samples
rows='program /nowhere/app
row 0x5010 0 get_buffer svc.c 10
row 0x5020 0 keep_name svc.c 40
row 0x6011 0 on_request svc.c 20
row 0x6000 0 on_request svc.c 19
row 0x7011 0 main svc.c 30
row 0x1000010 0 strdup - 0
module /nowhere/libc.so aabb01 0x1000000 0x10000 1500
module /nowhere/app aabb02 0x5000 0x10000 1500'

# Forty buffers that are freed, and of each second request a name that is not; and one call in a callback.
leaking() {
	echo "$rows"
	echo "rate 1"
	i=0
	while [ $i -lt 40 ]; do
		i=$((i + 1))
		t=$((i * 10000))
		echo "alloc $t 7 4096 $((4096 * i)) 0x5010 0x6011 0x7011"
		echo "free $((t + 100)) 7 4096 $((4096 * i)) $t"
		[ $((i % 2)) = 0 ] || echo "alloc $((t + 200)) 7 300 $((1048576 + 512 * i)) 0x1000010 0x5020 0x6011 0x7011"
	done
	echo 'spawn 420000 0x6000 0 1'
	echo 'poll 420100 1 1 0x6000 0'
	echo 'alloc 420200 7 100 9000000 0x5010 0x6011 0x7011'
	echo 'end 420300 1'
}
leaking | "$make_samples" plain leaking.bin || exit 99

say "by site"
run report --section memory --width 100 leaking.bin
run report --section findings --width 100 leaking.bin
run report --json leaking.bin | python3 -c '
import json, sys
memory = json.loads(sys.stdin.read().split("\n", 1)[1])["memory"]
for site in memory.pop("sites"):
    print(site)
print(memory)'

say "as profiles"
run export --kind heap --format folded -o - leaking.bin
run export --kind live --format folded -o - leaking.bin
run export --kind live --to 200us --format folded -o - leaking.bin
run export --kind heap -o heap.speedscope.json leaking.bin
grep -E '"(name|unit|endValue)"' heap.speedscope.json
run flamegraph --kind live -o live.svg leaking.bin
grep -o '<title>[^<]*' live.svg

say "estimates of a rate, and what was lost"
"$make_samples" plain some.bin <<END || exit 99
$rows
rate 524288
alloc 30000 7 1048576 0 0x5010 0x6011 0x7011
alloc 40000 7 1024 0 0x5020 0x6011 0x7011
overflow 50000 3 2 1
END
run report --section memory --section data --width 100 some.bin
run export --kind live --format folded -o - some.bin

say "without any"
printf '%s\nsample 2000 0x5010\n' "$rows" | "$make_samples" plain none.bin || exit 99
run report --section memory none.bin
run export --kind heap --format folded -o - none.bin

say "pprof"
if command -v go >/dev/null && HOME=$work GOTOOLCHAIN=local go tool -n pprof >/dev/null 2>&1; then
	export HOME="$work" PPROF_BINARY_PATH="$work" PPROF_TMPDIR="$work" GOTOOLCHAIN=local
	run export --kind heap -o heap.pb.gz leaking.bin
	for type in alloc_objects alloc_space inuse_objects inuse_space; do
		go tool pprof -sample_index=$type -unit=B -top heap.pb.gz 2>>errors |
			grep -E '^Type| (get_buffer|strdup)$'
	done
	go tool pprof -raw heap.pb.gz 2>>errors | sed -n '/^PeriodType/p; /^Period:/p'
else
	sed -n '/^# pprof/,$p' "$expected" | sed 1d
fi

finish 's/[0-9.]* us long/T long/; s/ *$//'
