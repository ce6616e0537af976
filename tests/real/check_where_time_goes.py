# SPDX-License-Identifier: Apache-2.0
"""What a report says of where_time_goes, beside what that said of itself:

	check_where_time_goes.py WAY REPORT PRINTED
"""
import json
import sys

way, report, printed = sys.argv[1:]
with open(report, encoding="utf-8") as file:
    report = json.load(file)
with open(printed, encoding="utf-8") as file:
    elapsed, cpu, ready = map(int, file.read().split())
name = {"fsync": "on_fsync", "lock": "on_lock", "faults": "on_faults"}.get(way, "on_compute")
callback = next(c for c in report["callbacks"] if c["name"] == name)
time = callback["time"]
checks = [f["check"] for f in report["findings"]]
said = {"elapsed": elapsed, "on_cpu": cpu, "ready": ready, "blocked": elapsed - cpu - ready}


def fail(why):
    sys.exit(f"{way}: {why}\nreport: {time}\nof itself: {said}\nfindings: {checks}")


parts = sum(time[key] for key in ("on_cpu_ns", "ready_ns", "blocked_ns", "unknown_ns"))
# The program opens files of /proc at both ends of a call, which is no part of what it measures.
if parts != callback["total_ns"] or abs(parts - elapsed) > elapsed / 100 + 50e3 * callback["polls"]:
    fail("the parts do not sum to what passed")
# Each part is what the program found, but for that and 2 % of the whole: both read at other moments.
for key in ("on_cpu", "ready", "blocked"):
    if abs(time[key + "_ns"] - said[key]) > elapsed / 50 + 50e3 * callback["polls"]:
        fail(f"{key} is not what the program found")
if time["unknown_ns"] > elapsed / 50:
    fail("something is unknown")
most = max(("on_cpu", "ready", "blocked"), key=lambda key: said[key])
took = f"{elapsed / 1e6:.1f} ms, {100 * said[most] / elapsed:.0f} % {most.replace('_', ' ')}"
of_machine = [f for f in report["findings"] if f["about"] == "machine"]
who = report["ready"]
if way in ("fsync", "lock") and time["blocked_ns"] > 0.6 * elapsed and "blocked-callback" not in checks:
    # Shorter ones than a call may take are none.
    if time["blocked_ns"] / callback["polls"] > 12e6:
        fail("nobody says that it blocks")
if way in ("compute", "neighbour", "throttled", "faults") and "blocked-callback" in checks:
    fail("it is said to block")
if way in ("neighbour", "throttled") and not of_machine:
    fail("nothing is said of the machine")
sampled = who["total_ns"] - who["unknown_ns"]
if way == "neighbour" and (who["others_ns"] < 0.5 * sampled or sampled == 0 or time["ready_ns"] < 0.3 * elapsed):
    fail(f"the neighbours are not told: {who}")
# A busy machine takes its part of that, too.
if way == "throttled" and (who["cpu_limit_ns"] < 0.25 * sampled or sampled == 0):
    fail(f"the limit is not told: {who}")
if way == "throttled" and who["cpu_limit_ns"] > 0.6 * sampled and not all(
    "cgroup" in of_machine[0][key] for key in ("message", "brief")):
    fail("the limit is not the cause")
if way == "faults" and "page-faults" not in checks:
    fail("page faults are not told")
print(f"{way}: {took}; the report says so")
