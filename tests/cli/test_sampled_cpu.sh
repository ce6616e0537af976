#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The CPU time that samples stand for: the same sums by callback in report, SQL and every export, and they are those of the
# callbacks' accounts, however often samples met them.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

# Calls of 3 ms: early() has one sample in ten calls, late() twenty.  idle() has none, and spare(), called from two places, one.
python3 - >t.script <<'END_P' || skip "no python3"
print("hz 100\nloop 1")
for i, name in enumerate(("early", "late", "idle", "spare", "work")):
    print(f"row {0x1000 * (i + 1):#x} 0 {name} svc.c {10 * i + 10}")
print("row 0x9010 0 main svc.c 90")
for task, function, site in ((1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 4, 1), (5, 4, 2)):
    print(f"spawn 2000 {function * 0x1000:#x} {0xa000 + site} {task}")
now, cpu = 1000000, 0
for turn in range(30):
    print(f"unpark {now} 1 {cpu}")
    for task, function, site, samples in ((1, 1, 1, turn % 10 == 0), (2, 2, 1, turn % 3 != 0), (3, 3, 1, False), (4, 4, 1, turn > 25), (5, 4, 2, turn == 3)):
        print(f"poll {now} 1 {task} {function * 0x1000:#x} {0xa000 + site}")
        if samples:
            print(f"taken {now + 1000000} 1 0 0 {function * 0x1000:#x} 0x9010")
        now += 3000000
        cpu += 3000000
        print(f"end {now} 1\noffcpu {now} 1 {task} 0 0")
    if turn % 2:
        print(f"taken {now + 500000} 1 0 0 0x5000 0x9010")
    now += 2000000
    cpu += 2000000
    print(f"outside {now} 1 {now - 1500000}")
    print(f"park {now} 1 {cpu}")
    now += 5000000
print(f"unpark {now} 1 {cpu}")
print(f"taken {now + 1000000} 9 0 0 0x5000 0x9010")
END_P
"$top_builddir/tests/cli/make_samples" plain t.bin <t.script || exit 99

say "by callback, in ms: what each used is known, and a callback that no sample met is told all the same"
"$dial9" report --json t.bin >t.json
"$dial9" query -f json t.bin "SELECT name, sum(sampled_cpu_ns) AS ns FROM calls GROUP BY name" >calls.json
"$dial9" query -f json t.bin "SELECT sum(cpu_ns) AS ns, count(*) AS n FROM samples" >samples.json
"$dial9" export --by callback -o t.folded t.bin
"$dial9" export --by callback -o t.speedscope.json t.bin
"$dial9" export -o t.pb t.bin
"$dial9" flamegraph --by callback -o t.svg t.bin
"$dial9" export --by callback --weight samples -o counts.folded t.bin
cat >sums.py <<'END_P'
import collections, json, re

def folded(name):
    sums = collections.Counter()
    for line in open(name):
        stack, n = line.rsplit(" ", 1)
        sums[stack.split(";")[0]] += int(n)
    return sums

def speedscope(name):
    file, sums = json.load(open(name)), collections.Counter()
    [profile] = [p for p in file["profiles"] if p["type"] == "sampled"]
    assert profile["unit"] == "nanoseconds"
    for sample, n in zip(profile["samples"], profile["weights"]):
        sums[file["shared"]["frames"][sample[0]]["name"]] += n
    return sums

def svg(name):
    return dict(re.findall(r"<title>([a-z\[\] ]+) \(([\d.]+ m?s), ", open(name).read()))

def varint(data, at):
    n = shift = 0
    while True:
        byte = data[at]
        at += 1
        n |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return n, at

def fields(data):
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        n, at = varint(data, at)
        if key & 7 == 2:
            yield key >> 3, data[at:at + n]
            at += n
        else:
            yield key >> 3, n

def numbers(data):
    at, out = 0, []
    while at < len(data):
        n, at = varint(data, at)
        out.append(n)
    return out

def pprof(name):
    profile = list(fields(open(name, "rb").read()))
    texts, sums = [text.decode() for key, text in profile if key == 6], collections.Counter()
    for sample in (dict_of for key, dict_of in profile if key == 2):
        labels, values = {}, []
        for key, value in fields(sample):
            if key == 2:
                values = numbers(value)
            elif key == 3:
                label = dict(fields(value))
                labels[texts[label[1]]] = texts[label.get(2, 0)]
        sums[labels.get("callback", "[no callback]")] += values[1]
    return sums

def report(name):
    file, sums = json.load(open(name)), collections.Counter()
    for callback in file["callbacks"]:
        sums[callback["name"]] += callback["time"]["on_cpu_ns"]
        assert callback["time"]["on_cpu_ns"] == callback["sampled"]["cpu_ns"]
    return sums, file

truth, file = report("t.json")
ways = {"folded": folded("t.folded"), "speedscope": speedscope("t.speedscope.json"), "pprof": pprof("t.pb")}
calls = {row["name"]: int(row["ns"]) for row in json.load(open("calls.json"))}
svg = svg("t.svg")
for name, ns in sorted(truth.items()):
    # What samples stand for is rounded, stack by stack.
    for way, sums in ways.items():
        assert abs(sums[name] - ns) < 100, (way, name, sums[name], ns)
    assert calls[name] == 0 if name == "idle" else abs(calls[name] - ns) < 100, (name, calls)
    print(f"{name} {ns / 1e6:.0f} ms, {folded('counts.folded')[name]} samples, {svg[name]}")
totals = {way: sum(sums.values()) for way, sums in ways.items()}
used = 30 * (5 * 3000000 + 2000000)
# A thread without a loop has a period.
assert all(abs(n - used - 10000000) < 200 for n in totals.values()), (totals, used)
print(f"{totals['folded'] / 1e6:.0f} ms in all, of which {ways['folded']['[no callback]'] / 1e6:.0f} ms in no callback")
functions = [f for thread in file["samples"]["threads"] for f in thread["functions"]]
samples = json.load(open("samples.json"))[0]
# In rows, and in the report's functions, a callback without a sample has none.
assert abs(int(samples["ns"]) + truth["idle"] - totals["folded"]) < 200, samples
assert abs(sum(f["cpu_ns"] for f in functions) - int(samples["ns"])) < 200
between = file["workers"][0]["samples"]["between"]
print(f"between rounds {between['cpu_ns'] / 1e6:.0f} ms in {between['samples']} samples, in rounds {file['workers'][0]['samples']['rounds']['cpu_ns'] / 1e6:.0f} ms")
END_P
python3 sums.py || exit 1
# The page folds samples itself, and has the weights from the report.
if "$top_srcdir/tests/support/has_node.sh"; then
	node "$top_srcdir/tests/toolkit/sampled_cpu.mjs" t.bin t.json >page
else
	printf 'early 90000000\nlate 90000000\nidle 90000000\nspare 180000000\nall 520000000\n' >page
fi
sort page
"$dial9" report -v t.bin | sed -n '/Where threads were/,/^$/p'

say "a part of the time, or of the threads, keeps the weights"
run export --by callback --callback early --from 200ms --to 300ms -o - --format folded t.bin
run export --by callback --callback idle --from 30ms --to 100ms -o - --format folded t.bin
run export --by callback --worker 1 --callback idle -o - --format folded t.bin
run export --callback idle -o - --format folded t.bin

finish ''
