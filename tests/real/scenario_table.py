#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A table of all scenarios of test_scenarios.sh: what the report says of each, alone and beside other programs.

    scenario_table.py BUILD [OLD_BUILD]

Each examples/scenario_NAME runs alone, before all others (chrt), then beside stress-ng on four CPUs; so does its innocent
twin.  Told are the first finding that is not about the recording, the owner of most of the loop's time, the first sentence
of the remedy, and what the twin is warned of.  With OLD_BUILD, a tree of an earlier version, the same programs are
recorded and reported by that one, too.  Written to standard output in Markdown; `make scenarios` puts it into core/doc/SCENARIOS.md.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ABOUT_THE_RECORDING = ("incomplete-data", "degraded-hooks")


def scenarios():
    """-> [NAME, ARGUMENT...] of each line `scenario "NAME ARGUMENT..." CHECK FUNCTION` of the test."""
    with open(os.path.join(HERE, "test_scenarios.sh"), encoding="utf-8") as file:
        found = re.findall(r'^\t?scenario ("[^"$]*"|\w+) ', file.read(), re.M)
    return [words.strip('"').split() for words in found]


class Told:
    def __init__(self, report):
        program = [finding for finding in report["findings"] if finding["check"] not in ABOUT_THE_RECORDING]
        first = program[0] if program else {}
        self.finding = " ".join(first.get(key) or "" for key in ("check", "name")).strip() or "nothing"
        self.advice = re.split(r"(?<=[.;:]) ", first.get("advice") or "")[0].rstrip(".;:")
        self.warnings = " ".join(dict.fromkeys(finding["check"] for finding in program if finding["severity"] != "info")) or "silent"
        self.owner = owner(report)


def owner(report):
    """Who has the most of the time of the loop that is awake longest."""
    loops = [worker["account"] for worker in report["workers"] if worker.get("account", {}).get("owners")]
    if not loops:
        return ""
    top = max(loops, key=lambda account: account["awake"])["owners"][0]
    return f"{top['name']} {100 * top['share']:.0f} %"


def run(build, examples, words, alone):
    """What the report of |build| says of the program |words|."""
    folder = tempfile.mkdtemp()
    loop = words[0].split("_")[0]
    adapter = f"libdial9-{loop if loop in ('glib', 'libev') else 'libevent'}.so"
    # The program names its own libraries; those of the same name that are loaded before are taken instead.
    preload = " ".join(os.path.join(build, part, ".libs", name) for part, name in (("core", "libdial9.so"), ("adapters", adapter)))
    environment = dict(os.environ, DIAL9_TRACE_DIR=os.path.join(folder, "trace"))
    program = os.path.join(examples, f"scenario_{words[0]}")
    first = ["chrt", "-f", "3"] if alone else []
    try:
        subprocess.run([*first, program, *words[1:]], env=dict(environment, LD_PRELOAD=preload), check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL, timeout=120)
        report = subprocess.run([os.path.join(build, "core", "dial9"), "report", "--json", environment["DIAL9_TRACE_DIR"]],
                                env=environment, check=True, stdout=subprocess.PIPE).stdout
        return Told(json.loads(report))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def both_ways(examples, build, old, words):
    """-> alone and beside others: of the program, of its twin, and of the program by each old build."""
    told = []
    for alone in (True, False):
        others = None if alone else subprocess.Popen(["stress-ng", "--cpu", "4", "--timeout", "600", "--quiet"])
        told.append([run(build, examples, words, alone), run(build, examples, [*words, "innocent"], alone),
                     *(run(other, examples, words, alone) for other in old)])
        if others:
            others.terminate()
            others.wait()
    return told


def main():
    build, *old = (os.path.abspath(path) for path in sys.argv[1:])
    examples = os.path.join(build, "examples")
    print(f"""# Scenarios

Written by `make scenarios` on {time.strftime("%Y-%m-%d")}: what `dial9 report` says first of each program of examples/ that has a
problem, of the time of its loop, and of its innocent twin, which does the same without the problem.  Each ran twice:
alone, and beside `stress-ng --cpu 4` on {os.cpu_count()} CPUs, where what the machine takes may be told first (`short-of-cpu`).{"  Before: by the build " + os.path.basename(old[0]) + "." if old else ""}
""")
    columns = ["scenario", "alone", "beside stress-ng", "most of the time, alone", "do", "twin, alone", "twin, beside"]
    if old:
        columns[1:1] = ["before, alone", "before, beside"]
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for words in scenarios():
        (alone, twin, *old_alone), (beside, twin_beside, *old_beside) = both_ways(examples, build, old, words)
        cells = [" ".join(words), alone.finding, beside.finding, alone.owner, alone.advice, twin.warnings, twin_beside.warnings]
        if old:
            cells[1:1] = [old_alone[0].finding, old_beside[0].finding]
        print("| " + " | ".join(cells) + " |", flush=True)


main()
