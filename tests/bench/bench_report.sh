#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Time and memory of `dial9 report` and `dial9 query` on a trace of ten million events, recorded for the purpose:
#
#	bench_report.sh BENCH_FLUSH DIAL9 [EVENTS]
set -eu

make=$1 dial9=$2 events=${3:-10000000}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# A machine that was busy meanwhile may have lost some: then it is another trace than was asked for.
for _ in 1 2 3; do
	rm -rf "${scratch:?}"/*
	made=$("$make" --make "$scratch" "$events")
	echo "recorded: $made"
	case $made in
	*", 0 lost") break ;;
	esac
done
case $made in
*", 0 lost") ;;
*) exit 2 ;;
esac
python3 - "$dial9" "$scratch" <<'END'
import os
import sys
import time

dial9, trace = sys.argv[1:]
SQL = "SELECT name, count(*), sum(ms), percentile(ms, 99), max(ms) FROM calls GROUP BY name ORDER BY 3 DESC"


def run(command):
    """Three runs: time by the clock and of the CPU in s, peak memory in MiB."""
    walls, times, peaks = [], [], []
    for _ in range(3):
        begin = time.monotonic()
        pid = os.posix_spawn(dial9, [dial9, *command], os.environ,
                             file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
        _, status, usage = os.wait4(pid, 0)
        if not os.WIFEXITED(status) or os.WEXITSTATUS(status) > 1:
            sys.exit(f"dial9 {command[0]}: {status}")
        walls.append(time.monotonic() - begin)
        times.append(usage.ru_utime + usage.ru_stime)
        peaks.append(usage.ru_maxrss / 1024)
    return walls, times, peaks


def tell(what, unit, values, budget):
    values.sort()
    print("FIGURE", what, f"{values[1]:.6g}", unit, "", 0, f"{values[1]:.6g}",
          f"{values[0]:.6g}", f"{values[2]:.6g}", budget, sep="\t")


for name, command, longest, most in (("report", ["report", "--color", "never", trace], 1, 64),
                                     ("query: aggregate", ["query", trace, SQL], 5, 0)):
    wall, cpu, memory = run(command)
    tell(f"{name} on 10 M events, by the clock", "s", wall, longest)
    tell(f"{name} on 10 M events, CPU", "s", cpu, 0)
    tell(f"{name} on 10 M events, peak memory", "MiB", memory, most)
END
