# SPDX-License-Identifier: Apache-2.0
"""The parts of the time of every callback, span, call and worker in JSON reports sum to its total:

	check_time_parts.py REPORT...
"""
import json
import sys

PARTS = ("on_cpu_ns", "ready_ns", "blocked_ns", "waiting_ns", "unknown_ns")


def check(what, item, total, waits):
    time = item["time"]
    parts = [time[key] for key in PARTS if key in time]
    if ("waiting_ns" in time) != waits or min(parts) < 0:
        sys.exit(f"{what}: {time}")
    if sum(parts) != total or time["total_ns"] != total:
        sys.exit(f"{what}: the parts sum to {sum(parts)}, and it took {total}: {time}")


def check_tasks(what, tasks, calls):
    time = tasks["time"]
    check(what, tasks, time["total_ns"], True)
    if time["total_ns"] - time["waiting_ns"] != calls:
        sys.exit(f"{what}: {calls} ns in calls, and {time}")


def check_process(process):
    for worker in process["workers"]:
        check(f"worker {worker['id']}", worker, worker["awake_ns"] + worker["parked_ns"], True)
    for callback in process["callbacks"]:
        check(callback["name"], callback, callback["total_ns"], False)
        if callback["tasks"]:
            check_tasks(f"tasks of {callback['name']}", callback["tasks"], callback["total_ns"])
    calls = sum(callback["total_ns"] for callback in process["callbacks"] if callback["tasks"])
    check_tasks("all tasks", process["tasks"], calls)
    for call in process["polls"]["longest"]:
        check(f"call of {call['name']}", call, call["duration_ns"], False)
    for span in process["spans"]:
        check(f"span {span['name']}", span, span["active_ns"] + span["idle_ns"], True)
    return sum(len(process[key]) for key in ("workers", "callbacks", "spans")) + len(process["polls"]["longest"])


checked = 0
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    for process in report.get("processes", [report]):
        checked += check_process(process)
print(f"{checked} times add up")
if not checked:
    sys.exit("there are none")
