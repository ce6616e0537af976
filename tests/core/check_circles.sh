#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# By the objects' symbols: files that call each other in a circle, and functions that another file defines than X.c, or a part of it
# X_y.c, for what X.h declares.  As many of each as tests/core/rooms.list says, none more, and none fewer: the list only shrinks.
set -eu

command -v python3 >/dev/null || {
	echo "python3 is not installed"
	exit 77
}
cd "$top_builddir"
symbols=$(mktemp)
trap 'rm -f "$symbols"' EXIT
find core adapters -name '*.o' | LC_ALL=C sort | xargs ${NM:-nm} -A >"$symbols" 2>/dev/null || true
python3 - "$top_srcdir" "$symbols" <<'END'
import glob
import os
import re
import sys

sys.setrecursionlimit(100000)
calls, home, weak = {}, {}, {}
for line in open(sys.argv[2], encoding="utf-8", errors="replace"):
    path, _, rest = line.partition(".o:")
    kind, name = rest.split()[-2:]
    if not name.startswith("d9_"):
        continue
    # Without the library's name before, and libtool's folder of objects for shared ones.
    file = re.sub(r"/(\.libs/)?([\w.]*-)?(\w+)$", r"/\3", path)
    if kind == "T":
        home[name] = file
    elif kind == "W":
        weak[name] = file  # another may take its place
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
source = sys.argv[1]
allowed, strays, doors = {}, {}, set()
with open(f"{source}/tests/core/rooms.list", encoding="utf-8") as rooms:
    for line in rooms:
        if line.startswith(("circle ", "stray ")):
            kind, most, file = line.split()
            (allowed if kind == "circle" else strays)[file] = int(most)
        elif line.startswith("door "):
            doors.add(line.split()[1])
bad = []
for circle in found:
    limits = [allowed.pop(file) for file in circle if file in allowed]
    if limits != [len(circle)]:
        bad.append(f"{len(circle)} files call each other in a circle, {limits[0] if limits else 'none'} may: {' '.join(circle)}")
# What was not built here is in no circle.
bad += [f"the circle of {file} is gone: its line in rooms.list, too" for file in allowed if file in graph]


def declares(header, file):
    """Whether what |header| declares may stand in |file|: X_parts.h and the like are X's own."""
    stem = re.sub(r"_(parts|self|state|inl)$", "", header)
    return os.path.dirname(file) == os.path.dirname(header) and f"{file}_".startswith(f"{stem}_")


headers = {}
for path in glob.glob(f"{source}/core/**/*.h", recursive=True) + glob.glob(f"{source}/adapters/**/*.h", recursive=True):
    header = os.path.relpath(path, source)[:-2]
    if "/include/" in header or f"{header}.h" in doors:
        continue
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            function = re.match(r"(?!static|typedef|extern)[a-zA-Z][\w \*]*?[ \*](d9_\w+)\(", line)
            if function:
                headers.setdefault(function[1], []).append(header)
stray = {}
for name, where in headers.items():
    if name in home and not any(declares(header, weak.get(name, home[name])) for header in where):
        stray.setdefault(where[0], []).append(f"{name} in {home[name]}.c")
built = {os.path.dirname(file) for file in home.values()}
for header in sorted(stray.keys() | strays.keys()):
    found, most = stray.get(header, []), strays.get(header, 0)
    if len(found) > most:
        bad.append(f"{header}.h declares what other files define, {len(found)} and may {most}: {', '.join(sorted(found))}")
    elif len(found) < most and os.path.dirname(header) in built:
        bad.append(f"{header}.h declares {len(found)} functions of other files: its line in rooms.list says {most}")
if not home:
    bad.append("no functions are seen in the objects")
print("\n".join(bad), end="\n" if bad else "")
sys.exit(1 if bad else 0)
END
