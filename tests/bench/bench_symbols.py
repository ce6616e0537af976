#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU time to name addresses, ours against another program's on the same addresses, inlined calls included.

    bench_symbols.py DIAL9 MAKE_SAMPLES MODULE...

What DIAL9 itself needs is added to the modules.  Modules without debug information are asked of, too, and count in both.
"""
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

ADDRESSES = 10000
BASE = 0x10000000000
ROUNDS = 5


def text_of(module):
    """Where .text begins and how long it is, and the build-id."""
    sections = subprocess.run(["readelf", "-SW", module], capture_output=True, text=True, check=True).stdout
    notes = subprocess.run(["readelf", "-n", module], capture_output=True, text=True, check=True).stdout
    text = re.search(r"\] \.text +PROGBITS +([0-9a-f]+) +[0-9a-f]+ +([0-9a-f]+)", sections)
    build_id = re.search(r"Build ID: (\w+)", notes)
    return (int(text[1], 16), int(text[2], 16), build_id[1]) if text and build_id else None


def choose(modules):
    """Addresses of each module, the same in each run."""
    random.seed(1)
    found = [(module, text) for module, text in ((m, text_of(m)) for m in modules) if text]
    each = ADDRESSES // len(found)
    return [(module, build_id, [random.randrange(start, start + size) for _ in range(each)])
            for module, (start, size, build_id) in found]


def make_trace(make_samples, chosen, path):
    script = []
    for i, (module, build_id, offsets) in enumerate(chosen):
        base = BASE + (i << 32)
        script.append(f"module {os.path.realpath(module)} {build_id} {base:#x} 0xf0000000 2000")
        script += [f"sample 3000 {base + offset:#x}" for offset in offsets]
    subprocess.run([make_samples, "zstd", path], input="\n".join(script), text=True, check=True)


def cpu_of(command, env=None, stdin=None):
    with tempfile.TemporaryFile("w+") as given:
        given.write(stdin or "")
        given.flush()
        given.seek(0)
        pid = os.posix_spawn(command[0], command, env or os.environ, file_actions=[
            (os.POSIX_SPAWN_DUP2, given.fileno(), 0), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
        _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit(f"{command[0]}: {status}")
    return usage.ru_utime + usage.ru_stime


def peer_of():
    """The program to compare with, and its arguments for a module."""
    llvm, elfutils = shutil.which("llvm-symbolizer"), shutil.which("eu-addr2line")
    if llvm:
        return "llvm-symbolizer", lambda module: [llvm, f"--obj={module}", "--inlines"]
    if elfutils:
        return "eu-addr2line", lambda module: [elfutils, "-i", "-f", "-e", module]
    return None, None


def debug_file(module, build_id):
    """What the other program is to read: it does not look for debug files by itself, as ours does."""
    path = f"/usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    return path if os.path.exists(path) else module


def median(values):
    return sorted(values)[len(values) // 2]


def figure(what, values, budget, peer="", peers=None):
    compared = [a / b for a, b in zip(values, peers)] if peers else values
    compared = sorted(compared)
    print("FIGURE", what, f"{median(values):.6g}", "s", peer, f"{median(peers) if peers else 0:.6g}",
          f"{median(compared):.6g}", f"{compared[len(compared) // 4]:.6g}", f"{compared[-1 - len(compared) // 4]:.6g}",
          budget, sep="\t")


def main():
    dial9, make_samples, *modules = sys.argv[1:]
    needed = subprocess.run(["ldd", dial9], capture_output=True, text=True, check=True).stdout
    modules += re.findall(r"=> (/\S+)", needed)
    chosen = choose(modules)
    name, peer = peer_of()
    cold, cached, peers = [], [], []
    with tempfile.TemporaryDirectory() as scratch:
        trace = os.path.join(scratch, "trace.0.bin.zst")
        make_trace(make_samples, chosen, trace)
        for i in range(ROUNDS):
            env = dict(os.environ, XDG_CACHE_HOME=os.path.join(scratch, f"cache{i}"))
            command = [dial9, "symbolize", "-o", os.path.join(scratch, "out"), trace]
            cold.append(cpu_of(command, env))
            cached.append(cpu_of(command, env))
            if peer:
                peers.append(sum(cpu_of(peer(debug_file(module, build_id)), None, "\n".join(map(hex, offsets)) + "\n")
                                 for module, build_id, offsets in chosen))
    what = f"symbolize {ADDRESSES:,} addresses of {len(chosen)} modules, CPU"
    figure(what, cold, 0.5, name or "", peers)
    figure(what + ", cached", cached, 0.1)
    if not peer:
        print("no llvm-symbolizer or eu-addr2line to compare with (Debian: llvm, elfutils)")


main()
