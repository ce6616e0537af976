# SPDX-License-Identifier: Apache-2.0
"""The time of every loop in JSON reports is divided completely, and its owners have what it was awake for:

	check_accounts.py REPORT...
"""
import json
import sys

PARTS = ("asleep_ns", "wait_cpu_ns", "wait_ready_ns", "callback_ns", "round_ns", "between_ns", "between_asleep_ns",
         "between_ready_ns", "stopped_ns", "not_recorded_ns")


def fail(path, worker, what):
    sys.exit(f"{path}: worker {worker['id']}: {what}: {worker['account']}")


def check_worker(path, worker):
    account = worker["account"]
    total = account["total_ns"]
    owners = account["owners"]
    if abs(sum(account[part] for part in PARTS) - total) > total / 1000:
        fail(path, worker, "its parts do not sum to the whole")
    if sum(owner["ns"] for owner in owners) + account["others_ns"] != account["awake_ns"]:
        fail(path, worker, "its owners do not sum to the time awake")
    if abs(account["left_ns"] + account["taken_ns"] + account["stopped_ns"] + account["not_recorded_ns"] -
           total) > total / 1000:
        fail(path, worker, "what was left to it and what was taken do not sum to the whole")
    if not 0 <= account["awake"] <= 1 or not 0 <= account["awake_ns"] <= account["left_ns"]:
        fail(path, worker, "it was awake for no share")
    if account["busy_longest_ns"] > account["busy_ns"] or account["busy_ns"] > total:
        fail(path, worker, "it was busy for longer than it ran")
    if len(owners) > 8 or owners != sorted(owners, key=lambda owner: -owner["ns"]):
        fail(path, worker, "its owners are too many, or in no order")
    for owner in owners:
        if owner["blocked_ns"] > owner["ns"] or not 0 <= owner["share"] <= 1:
            fail(path, worker, f"{owner} is no part of it")


checked = 0
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        report = json.load(file)
    for process in report.get("processes", [report]):
        for worker in process["workers"]:
            check_worker(path, worker)
            checked += 1
if not checked:
    sys.exit("no loops")
