#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""same_report.py A B: two reports in JSON, of one trace as it was written and of the same for readers from before, say
the same: every figure, but for the files and the number of spans' events.  Prints how many figures that are."""

import json
import re
import sys

WRITTEN = re.compile(r"^\.trace\.(files|total_events|events\.Span.*|processes\[\d+\]\.folder)(\W|$)")


def figures(value, path=""):
    if isinstance(value, dict):
        for key, part in value.items():
            yield from figures(part, f"{path}.{key}")
    elif isinstance(value, list):
        yield f"{path}[]", len(value)
        for i, part in enumerate(value):
            yield from figures(part, f"{path}[{i}]")
    else:
        yield path, value


def main():
    one, other = ({path: value for path, value in figures(json.load(open(name, encoding="utf-8"))) if not WRITTEN.match(path)}
                  for name in sys.argv[1:3])
    different = sorted(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))
    for path in different[:20]:
        print(f"{path}: {one.get(path)} and {other.get(path)}")
    if len(one) < 500:
        print(f"only {len(one)} figures")
        return 1
    print(f"{len(one)} figures of the report")
    return bool(different)


sys.exit(main())
