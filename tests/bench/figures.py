#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Run benchmarks and print one table of what they measured, against what was asked for.

    figures.py [--output FILE] PROGRAM [ARGUMENT...] [-- PROGRAM [ARGUMENT...]]...

Each program prints lines for bench.h.  A verdict is `kept`, `over budget`, or `inconclusive` where the
quartiles lie on both sides of the budget, the same thing measured twice differs by over 5 %, or the
machine was busy and the budget looks missed.  A figure is a result: exit status 1 only where a program failed.
"""

import os
import platform
import subprocess
import sys
import time

NOISE = 0.05


def split(arguments):
    """-> the output file or None, and the commands between `--`."""
    output = None
    if arguments[:1] == ["--output"]:
        output, arguments = arguments[1], arguments[2:]
    commands = [[]]
    for word in arguments:
        if word == "--":
            commands.append([])
        else:
            commands[-1].append(word)
    return output, [command for command in commands if command]


def busy():
    """Processes that want a core, beyond the cores there are."""
    return os.getloadavg()[0] > 0.75 * os.cpu_count()


def number(value):
    if value == 0 or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"


class Figure:
    def __init__(self, fields, noisy, was_busy):
        (self.what, value, self.unit, self.peer, peer_value, middle, low, high, budget) = fields
        self.value, self.peer_value = float(value), float(peer_value)
        self.middle, self.low, self.high = float(middle), float(low), float(high)
        self.budget = float(budget)
        self.verdict = self.judge(noisy, was_busy)

    def judge(self, noisy, was_busy):
        if self.budget == 0:
            return ""
        if self.budget > 0:
            kept, doubtful = self.middle <= self.budget, self.low <= self.budget <= self.high
        else:
            kept, doubtful = self.middle >= -self.budget, self.low <= -self.budget <= self.high
        if noisy or doubtful or (was_busy and not kept):
            return "inconclusive"
        return "kept" if kept else "over budget"

    def cells(self):
        ratio = f"x{self.middle:.3g} ({self.low:.3g} to {self.high:.3g})"
        if not self.peer:
            ratio = f"{number(self.low)} to {number(self.high)}"
        mark = "x" if self.peer else ""
        budget = "" if self.budget == 0 else (
            f"<= {mark}{number(self.budget)}" if self.budget > 0
            else f">= {mark}{number(-self.budget)}")
        peer = f"{self.peer}: {number(self.peer_value)}" if self.peer else ""
        return [self.what, f"{number(self.value)} {self.unit}", peer, ratio, budget, self.verdict]


def run(command):
    """-> (figures, whether the program ended well)."""
    was_busy = busy()
    print(f"== {os.path.basename(command[0])}", flush=True)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    was_busy = was_busy or busy()
    noisy, figures = False, []
    for line in done.stdout.splitlines():
        kind, *fields = line.split("\t")
        if kind == "SAME":
            noisy = abs(float(fields[1]) - 1) > NOISE
            print(f"{fields[0]}: x{float(fields[1]):.3f} when measured twice"
                  + (", too noisy for what follows" if noisy else ""))
        elif kind == "FIGURE":
            figures.append(Figure(fields, noisy, was_busy))
            print("  ".join(cell for cell in figures[-1].cells() if cell), flush=True)
        else:
            print(line)
    if done.returncode not in (0, 1, 77):
        print(f"{command[0]}: exit status {done.returncode}")
    return figures, done.returncode in (0, 1, 77)


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as info:
            for line in info:
                if line.startswith("model name"):
                    return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine()


def clock():
    """What the kernel's clock is made of: where that is not the TSC, events are stamped by clock_gettime()."""
    try:
        with open("/sys/devices/system/clocksource/clocksource0/current_clocksource", encoding="ascii") as source:
            return source.read().strip()
    except OSError:
        return "unknown"


def kept(output):
    """What people wrote below the table, which stays."""
    try:
        with open(output, encoding="utf-8") as file:
            text = file.read()
    except OSError:
        return ""
    at = text.find("\n## ")
    return text[at:] if at >= 0 else ""


def document(figures, load_before):
    """The table as Markdown."""
    compiler = os.environ.get("CC_VERSION", "")
    lines = [
        "# Figures",
        "",
        "Written by `make figures`, which keeps what stands below the first table.  Ratios are to a peer in",
        "the same run, with quartiles; a budget is for the ratio, or for the value where there is no peer.",
        "",
        f"* {time.strftime('%Y-%m-%d', time.gmtime())}, {processor()}, {os.cpu_count()} cores, "
        f"Linux {platform.release()}" + (f", {compiler}" if compiler else ""),
        f"* clock source {clock()}" + ("" if clock() == "tsc" else ", not tsc: events are stamped by clock_gettime()"),
        f"* load average {load_before:.2f} before and {os.getloadavg()[0]:.2f} after: "
        + ("busy, what looks missed is inconclusive"
           if max(load_before, os.getloadavg()[0]) > 0.75 * os.cpu_count() else "quiet"),
        "",
        "| figure | measured | peer | ratio or quartiles | budget | verdict |",
        "|---|---|---|---|---|---|",
    ]
    lines += ["| " + " | ".join(figure.cells()) + " |" for figure in figures]
    return "\n".join(lines) + "\n"


def main():
    output, commands = split(sys.argv[1:])
    load_before, figures, fine = os.getloadavg()[0], [], True
    for command in commands:
        more, ended_well = run(command)
        figures += more
        fine = fine and ended_well
    text = document(figures, load_before)
    print()
    print(text, end="")
    if output:
        text += kept(output)
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    return 0 if fine else 1


sys.exit(main())
