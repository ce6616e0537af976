#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""same_figures.py A B: two reports in JSON of the same work, recorded twice, say the same but for times.

What depends on time, on the process and on the kind of the events is left out; all else is compared, and how many
figures that were is printed.
"""

import json
import re
import sys

# Times, shares of them, and what hangs on the length of something.
TIMES = re.compile(r"(_ns|_wall|_share|^ns|^share|^time|^wall|^cpu|^awake|^busy|^utilisation|_utilisation|^cores_\w+|_ratio|^over_\w+)$")
# Who, where and when: the process, the machine's state, the files; which task waited longest.
PLACES = {"path", "boot_id", "pid", "folder", "tid", "metadata", "start_wall", "usage", "worst", "longest", "files", "findings",
          "account", "accounts", "samples", "sampled", "loop_time", "shape", "log", "queues", "population", "events", "total_events",
          "causes", "blocked_in", "blocking_calls", "locks", "idle", "ready", "degraded", "recorded", "by_period", "by_samples",
          "few_samples", "too_few_samples", "on_cpu_samples", "off_cpu_samples", "off_cpu_estimated", "with_samples", "kernel_waits"}


def figures(value, path=""):
    """The paths of |value| that are compared, and what stands there."""
    if isinstance(value, dict):
        for key, part in value.items():
            if key not in PLACES and not TIMES.search(key):
                yield from figures(part, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path}[]", len(value)
        parts = sorted(value, key=lambda part: part["name"]) if value and isinstance(value[0], dict) and "name" in value[0] else value
        for i, part in enumerate(parts):
            yield from figures(part, f"{path}[{i}]")
    else:
        yield path, value


def main():
    one, other = ({path: value for path, value in figures(json.load(open(name, encoding="utf-8")))} for name in sys.argv[1:3])
    different = sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))
    for path in different:
        print(f"{path}: {one.get(path)} and {other.get(path)}")
    calls = sum(value for path, value in one.items() if re.fullmatch(r"\.callbacks\[\d+\]\.polls", path))
    if len(one) < 100 or not calls:
        print(f"only {len(one)} figures")
    print(f"{calls} calls, {'the same' if not different else 'not the same'}")
    return bool(different)


sys.exit(main())
