#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Files that call each other in a circle, as the objects have it: those that tests/core/rooms.list names, none larger than there, and
# none smaller: the list only shrinks.
set -eu

command -v python3 >/dev/null || {
	echo "python3 is not installed"
	exit 77
}
cd "$top_builddir"
symbols=$(mktemp)
trap 'rm -f "$symbols"' EXIT
find core adapters -name '*.o' | LC_ALL=C sort | xargs ${NM:-nm} -A >"$symbols" 2>/dev/null || true
python3 - "$top_srcdir/tests/core/rooms.list" "$symbols" <<'END'
import re
import sys

sys.setrecursionlimit(100000)
calls, home = {}, {}
for line in open(sys.argv[2], encoding="utf-8", errors="replace"):
    path, _, rest = line.partition(".o:")
    kind, name = rest.split()[-2:]
    if not name.startswith("d9_"):
        continue
    # Without the library's name before, and libtool's folder of objects for shared ones.
    file = re.sub(r"/(\.libs/)?([\w.]*-)?(\w+)$", r"/\3", path)
    if kind == "T":
        home[name] = file
    elif kind == "U":
        calls.setdefault(file, set()).add(name)
graph = {file: sorted({home[name] for name in names if name in home} - {file}) for file, names in calls.items()}

# Tarjan's: files that reach each other.
index, low, stack, found = {}, {}, [], []


def visit(file):
    index[file] = low[file] = len(index)
    stack.append(file)
    for other in graph.get(file, ()):
        if other not in index:
            visit(other)
            low[file] = min(low[file], low[other])
        elif other in stack:
            low[file] = min(low[file], index[other])
    if low[file] == index[file]:
        at = stack.index(file)
        if len(stack) - at > 1:
            found.append(sorted(stack[at:]))
        del stack[at:]


for file in sorted(graph):
    if file not in index:
        visit(file)
allowed = {}
with open(sys.argv[1], encoding="utf-8") as rooms:
    for line in rooms:
        if line.startswith("circle "):
            _, most, file = line.split()
            allowed[file] = int(most)
bad = []
for circle in found:
    limits = [allowed.pop(file) for file in circle if file in allowed]
    if limits != [len(circle)]:
        bad.append(f"{len(circle)} files call each other in a circle, {limits[0] if limits else 'none'} may: {' '.join(circle)}")
# What was not built here is in no circle.
bad += [f"the circle of {file} is gone: its line in rooms.list, too" for file in allowed if file in graph]
if not home:
    bad.append("no functions are seen in the objects")
print("\n".join(bad), end="\n" if bad else "")
sys.exit(1 if bad else 0)
END
