# SPDX-License-Identifier: Apache-2.0
"""Holds `dial9 report --json` of the original's demo trace against published figures.

Sums, counts and maxima are exact.  Quantiles were found by nearest rank on all values; ours come
from histograms and must lie within the error that the report states.
"""

import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    report = json.load(file)

checked = 0
failures = []


def equal(what, found, expected):
    global checked
    checked += 1
    if found != expected:
        failures.append(f"{what}: {found}, expected {expected}")


def near(what, found, expected, error=report["quantile_error"]):
    global checked
    checked += 1
    if abs(found - expected) > error * expected:
        failures.append(f"{what}: {found}, expected {expected} within {error}")


def quantiles(what, found, **expected):
    for name, value in expected.items():
        if name in ("min", "max"):
            equal(f"{what} {name}", found[f"{name}_ns"], value)
        else:
            near(f"{what} {name}", found[f"{name}_ns"], value)


def check_trace(trace):
    events = {
        "ClockSyncEvent": 2, "SegmentMetadataEvent": 1, "PollStartEvent": 36801,
        "PollEndEvent": 36801, "WorkerParkEvent": 6304, "WorkerUnparkEvent": 6304,
        "QueueSampleEvent": 464, "WakeEventEvent": 35552, "TaskSpawnEvent": 262,
        "TaskTerminateEvent": 359, "CpuSampleEvent": 6949, "TaskDumpEvent": 12952,
        "SymbolTableEntry": 992, "SpanCloseEvent": 9890,
    }
    for name, count in events.items():
        equal(name, trace["events"].get(name), count)
    for name, count in (("routes::record_metric", 16483), ("routes::query_metric", 5927),
                        ("ddb::query_metric", 5927), ("buffer::flush_to_ddb", 72),
                        ("buffer::put_aggregate", 94)):
        for edge in ("SpanEnter", "SpanExit"):
            equal(f"{edge} {name}",
                  sum(n for key, n in trace["events"].items()
                      if key.startswith(edge) and name in key), count)
    equal("events", sum(trace["events"].values()), 210639)
    equal("total events", trace["total_events"], 210639)
    equal("start", trace["start_ns"], 503226130327903)
    equal("end", trace["end_ns"], 503230841712017)
    equal("duration", trace["duration_ns"], 4711384114)
    equal("segments", trace["segments"], 1)
    equal("loss", trace["loss"], {})
    # The published anchor was held in a double, whose step there is 256 ns.
    near("wall offset", trace["wall_offset_ns"], 1778364484045651928, 256 / 1.7e18)
    equal("wall time", trace["start_wall"][:26], "2026-05-15T17:55:10.175979")
    equal("service", trace["metadata"]["service"], "metrics-service")
    equal("server_addr", trace["metadata"]["server_addr"], "0.0.0.0:3001")
    equal("metadata", len(trace["metadata"]), 5)


def check_workers(workers):
    expected = [
        dict(id=0, name="tokio-rt-worker", tid=31710, polls=18365, open_ended_polls=0,
             poll_ns=660934585, parks=3110, parked_ns=4017596889, active_periods=3109,
             awake_ns=693784425, wakes_issued=17762, handovers=0),
        dict(id=1, name="tokio-rt-worker", tid=31711, polls=18436, open_ended_polls=0,
             poll_ns=622245455, parks=3194, parked_ns=4055897587, active_periods=3193,
             awake_ns=649388312, wakes_issued=17695, handovers=0),
    ]
    extra = [
        dict(utilisation=0.147257, cpu_ratio=0.993675, waits=7, longest=29870,
             on_cpu=36, off_cpu=3385, polls_with_on_cpu=31, polls_with_off_cpu=395),
        dict(utilisation=0.138013, cpu_ratio=0.993367, waits=6, longest=19470,
             on_cpu=36, off_cpu=3492, polls_with_on_cpu=34, polls_with_off_cpu=417),
    ]
    equal("workers", len(workers), 2)
    for worker, want, more in zip(workers, expected, extra):
        for key, value in want.items():
            equal(f"worker {want['id']} {key}", worker[key], value)
        for key in ("utilisation", "cpu_ratio"):
            equal(f"worker {want['id']} {key}", f"{worker[key]:.6f}", f"{more[key]:.6f}")
        equal("kernel waits", worker["kernel_waits"]["count"], more["waits"])
        equal("longest kernel wait", worker["kernel_waits"]["max_ns"], more["longest"])
        for key in ("on_cpu", "off_cpu", "polls_with_on_cpu", "polls_with_off_cpu"):
            equal(f"worker {want['id']} {key}", worker["samples"][key], more[key])
    equal("sum of kernel waits", sum(w["kernel_waits"]["sum_ns"] for w in workers), 127760)


def check_polls():
    polls = report["polls"]
    equal("polls", polls["count"], 36801)
    quantiles("polls", polls, p50=10500, p90=82290, p99=212870, p999=314511, max=50280303)
    equal("polls over 1 ms", polls["over_1ms"], 4)
    equal("polls over 10 ms", polls["over_10ms"], 3)
    equal("polls over 50 ms", polls["over_50ms"], 1)
    equal("polls with samples", polls["with_samples"], 874)
    equal("uninstrumented polls", polls["uninstrumented"], 3232)
    longest = [
        (50280303, 0, 3809489360, 112, "axum_traced.rs:173:32", 0, 1),
        (47674756, 1, 3812094937, 121, "axum_traced.rs:173:32", 0, 1),
        (38924605, 0, 469593432, 3, "main.rs:220:14", 3, 0),
        (5715593, 1, 330031, 3, "main.rs:220:14", 0, 1),
    ]
    found = [(p["duration_ns"], p["worker"], p["offset_ns"], p["task"],
              p["location"].rsplit("/", 1)[-1], p["on_cpu_samples"], p["off_cpu_samples"])
             for p in polls["longest"]]
    equal("longest polls", found, longest)
    first = report["findings"][0]
    equal("kernel stack of the longest poll in the first finding",
          "expand_files, expand_fdtable, synchronize_rcu" in first["evidence"][0]["text"], True)
    places = {
        "metrics-service/src/axum_traced.rs:173:32": (33473, 10300, 50280303, 82, 864),
        "hyper-util-0.1.20/src/rt/tokio.rs:115:9": (3232, 19030, 398001, 177, 13),
        "metrics-service/src/main.rs:242:24": (52, 20530, 303911, 1, 0),
        "metrics-service/src/main.rs:220:14": (42, 17720, 38924605, 1, 5),
        "metrics-service/src/main.rs:285:24": (2, 330, 14630, 1, 0),
    }
    equal("callbacks", len(report["callbacks"]), len(places))
    for callback in report["callbacks"]:
        name = next(key for key in places if callback["location"].endswith(key))
        count, p50, longest_ns, tasks, samples = places[name]
        equal(f"{name} polls", callback["polls"], count)
        quantiles(name, callback, p50=p50, max=longest_ns)
        equal(f"{name} tasks", callback["tasks_spawned"], tasks)
        equal(f"{name} off-CPU samples", callback["off_cpu_samples"], samples)


def check_tasks_and_wakes():
    tasks = report["tasks"]
    for key, value in (("spawned", 262), ("uninstrumented", 177), ("ended", 359),
                       ("ended_without_spawn", 97), ("peak_alive", 183), ("alive_at_end", 0)):
        equal(f"tasks {key}", tasks[key], value)
    wakes = report["wake_to_poll"]
    equal("wakes", wakes["wakes"], 35552)
    equal("delays", wakes["count"], 33480)
    quantiles("delays", wakes, p50=8930, p90=370981, p99=1154163, max=47676316)
    equal("delays over 100 us", wakes["over_100us"], 9135)
    equal("delays over 1 ms", wakes["over_1ms"], 470)
    equal("delays over 5 ms", wakes["over_5ms"], 41)
    equal("worst delays", [(d["delay_ns"], d["task"]) for d in wakes["worst"][:5]],
          [(47676316, 80), (7829589, 57), (7786169, 31), (7731648, 58), (7678868, 45)])
    equal("queue samples", report["queues"]["global"]["samples"], 464)
    equal("queue", report["queues"]["global"]["max"], 0)
    equal("local queue", report["queues"]["local"]["max"], 101)
    equal("sum of local queues", report["queues"]["local"]["sum"], 127124)


def check_samples():
    samples = report["samples"]
    for key, value in (("on_cpu", 72), ("off_cpu", 6877), ("off_worker", 0),
                       ("on_cpu_in_polls", 67), ("off_cpu_in_polls", 882),
                       ("top_off_cpu_stack", 3877)):
        equal(f"samples {key}", samples[key], value)


def check_spans():
    expected = {
        "record_metric": (8027, 1370, 2350, 390841, 2147235),
        "query_metric": (1842, 10449255, 66189422, 287396006, 301373080),
        "put_aggregate": (16, 19837008, 62150872, 249851554, 249851554),
        "flush_to_ddb": (5, 16160, 298199832, 550634862, 550634862),
    }
    spans = report["spans"]
    equal("span names", sorted(s["name"] for s in spans), sorted(expected))
    for span in spans:
        count, shortest, p50, p99, longest = expected[span["name"]]
        equal(f"{span['name']} count", span["count"], count)
        quantiles(span["name"], span, min=shortest, p50=p50, p99=p99, max=longest)
        equal(f"{span['name']} unmatched", span["unmatched"], 0)
    query = next(s for s in spans if s["name"] == "query_metric")
    equal("kinds of query_metric", [o["count"] for o in query["origins"]], [921, 921])
    equal("spans with a parent",
          sum(o["with_parent"] for s in spans for o in s["origins"]), 16)
    equal("active time", sum(s["active_ns"] for s in spans), 720541391)
    equal("active time in polls", sum(s["active_in_polls_ns"] for s in spans), 720468781)
    record = next(s for s in spans if s["name"] == "record_metric")
    near("span outliers", record["origins"][0]["over_10_p50"], 151, 0.02)


def check_findings():
    equal("kernel delays over 100 ns",
          sum(w["kernel_waits"]["over_100ns"] for w in report["workers"]), 13)
    found = {}
    for finding in report["findings"]:
        found.setdefault(finding["check"], []).append(finding["severity"])
    equal("findings", found, {
        "long-callback": ["critical", "warning"], "blocking": ["warning"],
        "wake-delay": ["warning"], "span-outlier": ["info"],
    })
    equal("first finding", report["findings"][0]["name"].rsplit("/", 1)[-1],
          "axum_traced.rs:173:32")


check_trace(report["trace"])
check_workers(report["workers"])
check_polls()
check_tasks_and_wakes()
check_samples()
check_spans()
check_findings()
for failure in failures:
    print(failure)
print(f"{checked} figures, {len(failures)} wrong")
sys.exit(bool(failures))
