#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# memcached from Debian with every allocation sampled: it answers as alone, all frees have their allocations, and its slabs
# are told by the function of memcached that asks for them.
set -eu
# shellcheck source=tests/real/common.sh
. "$top_srcdir/tests/real/common.sh"

need memcached python3
connections=16 requests=500
port=$((28000 + $$ % 2000))
user=''
[ "$(id -u)" != 0 ] || user='-u root'

# run NAME COMMAND...: memcached as COMMAND's program, loaded and stopped by SIGTERM; its own counters go to $dir/NAME.
run() {
	name=$1
	shift
	# shellcheck disable=SC2086
	"$@" memcached $user -l 127.0.0.1 -p $port -U 0 -t 2 &
	pid=$!
	pids="$pids $pid"
	"$helpers/client" memcached $port $connections $requests >"$dir/$name"
	kill -TERM $pid
	wait $pid || true
}

# What does not depend on the moment.
counters() {
	grep -E ' (cmd_get|cmd_set|get_hits|get_misses|curr_items|total_items|bytes|threads|evictions) ' "$1"
}

run plain env
run sampled "$dial9" record -q -o "$dir/trace" --memory=1 --
equal "memcached's counters, alone and sampled" "$(counters "$dir/plain" | cksum)" "$(counters "$dir/sampled" | cksum)"
[ "$(counters "$dir/plain" | wc -l)" -gt 5 ] || fail "memcached told no counters"

"$dial9" report --json "$dir/trace" >"$dir/report"
python3 - "$dir/report" <<'END' || fail "the report"
import json, sys

report = json.load(open(sys.argv[1]))
memory = report["memory"]
assert memory["evicted"] == 0 and report["trace"]["dropped_allocs"] == 0 and report["trace"]["dropped_frees"] == 0
assert memory["allocated"]["samples"] - memory["frees"] == memory["live"]["samples"]
print("sampled: %d allocations, %d frees" % (memory["allocated"]["samples"], memory["frees"]))
# The hash table and the slabs are its largest, and live to its end.
sites = [s for s in memory["sites"] if s["live"]["bytes"] > 500000]
assert sites, memory["sites"][:3]
assert all(s["stack"] for s in sites)
print("large and live: %d sites" % len(sites))
END
