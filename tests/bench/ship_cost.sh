#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `dial9 ship` costs, with its child dial9-store: CPU at 1 MB/s over TLS and with nothing to do, memory with two uploads,
# the rate against cp of the same files, and what a recorded memcached pays beside it.  The store is tests/ship/s3d.mjs, on loopback.
#
#	ship_cost.sh BENCH_FLUSH DIAL9 CLIENT PRELOAD [SECONDS]		CLIENT: of tests/real; SECONDS: of each measurement [20]
set -eu

make=$1 dial9=$2 client=$3 preload=$4 seconds=${5:-20}
for program in node openssl python3; do
	command -v $program >/dev/null || {
		echo "ship_cost.sh: there is no $program" >&2
		exit 0
	}
done
[ -x "${dial9%/*}/dial9-store" ] || {
	echo "ship_cost.sh: built without dial9-store" >&2
	exit 0
}
store=$(cd "$(dirname "$0")/../ship" && pwd)/s3d.mjs
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/small" "$scratch/large"
"$make" --make "$scratch/small" 330000
"$make" --make "$scratch/large" 6700000
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$scratch/key.pem" -out "$scratch/cert.pem" -days 2 \
	-subj /CN=localhost -addext subjectAltName=IP:127.0.0.1 2>/dev/null
python3 - "$dial9" "$store" "$scratch" "$seconds" "$client" "$preload" <<'END'
import glob
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

dial9, store, scratch, seconds, client, preload = *sys.argv[1:4], int(sys.argv[4]), *sys.argv[5:7]
ENV = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "DIAL9_"))}
ENV |= {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "eu-west-1", "HOME": scratch}


class Store:
    """s3d.mjs, which ends with its standard input."""

    def __init__(self, *options):
        self.process = subprocess.Popen(["node", store, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


def command(server, traces, *options):
    return [dial9, "ship", traces, "--to", "s3://bucket/p", "--endpoint", server.address, "--ca", f"{scratch}/cert.pem", "--raw", *options]


def tell(what, unit, values, budget, peer="", peer_value=0.0, ratios=None):
    low, middle, high = quartiles(ratios or values)
    print("FIGURE", what, f"{quartiles(values)[1]:.6g}", unit, peer, f"{peer_value:.6g}", f"{middle:.6g}", f"{low:.6g}", f"{high:.6g}", budget,
          sep="\t")


def quartiles(values):
    values = sorted(values)
    return [values[round(part * (len(values) - 1))] for part in (0.25, 0.5, 0.75)]


def read(path):
    with open(path, encoding="ascii") as text:
        return text.read()


def processes(pid):
    """It, and dial9-store."""
    return [pid, *map(int, read(f"/proc/{pid}/task/{pid}/children").split())]


def fields(pid, name):
    """The sum over both of what /proc/PID/status says in its line |name|."""
    return sum(int(line.split()[1]) for one in processes(pid) for line in read(f"/proc/{one}/status").splitlines()
               if line.startswith(name + ":"))


def cpu_ns(pid):
    return sum(int(read(f"/proc/{one}/task/{task}/schedstat").split()[0]) for one in processes(pid) for task in os.listdir(f"/proc/{one}/task"))


class Shipper:
    """Runs until it is told to end."""

    def __init__(self, server, traces, *options):
        self.process = subprocess.Popen(command(server, traces, *options), env=ENV, stdout=subprocess.DEVNULL)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def seal(source, folder, index):
    """As a recorder does: complete, then under its name."""
    shutil.copyfile(source, f"{folder}/.copy")
    os.chmod(f"{folder}/.copy", 0o600)
    os.rename(f"{folder}/.copy", f"{folder}/trace.{index}.bin.zst")


def segments(folder):
    return glob.glob(f"{folder}/trace.*.bin.zst")


def wait_for(condition):
    until = time.monotonic() + 60
    while not condition():
        if time.monotonic() > until:
            sys.exit("ship_cost.sh: nothing goes on")
        time.sleep(0.02)


def fresh(name):
    traces = f"{scratch}/{name}"
    shutil.rmtree(traces, ignore_errors=True)
    os.makedirs(f"{traces}/abcd-1", mode=0o700)
    return traces, f"{traces}/abcd-1"


def pace(small, server):
    """CPU of a core in %, a second at a time, at 1 MB a second; then with nothing to do."""
    traces, folder = fresh("pace")
    busy = []
    with Shipper(server, traces, "--every", "1s") as shipper:
        seal(small, folder, 0)
        wait_for(lambda: not segments(folder))
        for i in range(1, seconds + 1):
            before, begun = cpu_ns(shipper.pid), time.monotonic()
            seal(small, folder, i)
            time.sleep(max(0, begun + os.path.getsize(small) / 1e6 - time.monotonic()))
            busy.append((cpu_ns(shipper.pid) - before) / (time.monotonic() - begun) / 1e7)
        wait_for(lambda: not segments(folder))
    tell("dial9 ship at 1 MB/s, TLS, CPU of a core", "%", busy, 1)


def idle(small, server):
    traces, folder = fresh("idle")
    with Shipper(server, traces) as shipper:
        seal(small, folder, 0)
        wait_for(lambda: not segments(folder))
        before, woken, begun = cpu_ns(shipper.pid), fields(shipper.pid, "voluntary_ctxt_switches"), time.monotonic()
        time.sleep(max(seconds, 20))
        took = time.monotonic() - begun
        tell("dial9 ship with nothing to do, CPU of a core", "%", [(cpu_ns(shipper.pid) - before) / took / 1e7], 0.1)
        tell("dial9 ship with nothing to do, wake-ups in 10 s", "", [(fields(shipper.pid, "voluntary_ctxt_switches") - woken) / took * 10], 1)


def memory(large, server):
    traces, folder = fresh("memory")
    peak = 0
    with Shipper(server, traces, "--every", "100ms") as shipper:
        for i in range(8):
            seal(large, folder, i)
        while segments(folder):
            peak = max(peak, fields(shipper.pid, "VmHWM"))
            time.sleep(0.01)
    tell("dial9 ship, two uploads of 20 MB at once, peak memory", "MiB", [peak / 1024], 24)


def rate(large, server):
    """MB/s with start and end of the command, against cp and sync of the same files."""
    ours, theirs = [], []
    for _ in range(5):
        traces, folder = fresh("rate")
        for i in range(8):
            seal(large, folder, i)
        size = sum(map(os.path.getsize, segments(folder))) / 1e6
        begun = time.monotonic()
        os.mkdir(f"{scratch}/copy")
        subprocess.run(["cp", *segments(folder), f"{scratch}/copy"], check=True)
        theirs.append(size / (time.monotonic() - begun))
        shutil.rmtree(f"{scratch}/copy")
        begun = time.monotonic()
        subprocess.run(command(server, traces, "--once"), env=ENV, check=True, stdout=subprocess.DEVNULL)
        ours.append(size / (time.monotonic() - begun))
    tell("dial9 ship, segments of 20 MB", "MB/s", ours, -100)
    tell("dial9 ship, segments of 20 MB, against cp", "MB/s", ours, 0, "cp", quartiles(theirs)[1], [a / b for a, b in zip(ours, theirs)])


class Feeder(threading.Thread):
    """Seals a segment whenever one has gone."""

    def __init__(self, source, folder):
        super().__init__()
        self.source, self.folder, self.ends = source, folder, threading.Event()

    def run(self):
        index = 0
        while not self.ends.wait(0.01):
            while len(segments(self.folder)) < 2:
                seal(self.source, self.folder, index)
                index += 1

    def __enter__(self):
        self.start()

    def __exit__(self, *_):
        self.ends.set()
        self.join()


class Hashes(Feeder):
    """Reads the same bytes as often as it can, and sends nothing: what any other program costs."""

    def run(self):
        while not self.ends.is_set():
            subprocess.run(["sha256sum", self.source], check=True, stdout=subprocess.DEVNULL)


def recorded_memcached():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    user = ["-u", "root"] if os.getuid() == 0 else []
    process = subprocess.Popen(["memcached", *user, "-U", "0", "-l", "127.0.0.1", "-p", str(port), "-t", "1"],
                               env=ENV | {"LD_PRELOAD": preload, "DIAL9_TRACE_DIR": f"{scratch}/traced"}, stderr=subprocess.DEVNULL)

    def answers():
        with socket.socket() as one:
            return not one.connect_ex(("127.0.0.1", port))

    wait_for(answers)
    return process, port


def effect(large, server):
    """
    CPU of memcached per get: beside the shipper, and beside a program that sends nothing, against neither.

    memcached and its client have a processor, all else the others: how many requests there are at a time, and with that what one costs,
    depends on who else wants the same processor by far more than on what is measured here.
    """
    processors = sorted(os.sched_getaffinity(0))
    if len(processors) < 2:
        return
    os.sched_setaffinity(0, processors[:1])
    process, port = recorded_memcached()
    os.sched_setaffinity(0, processors[1:])
    for task in os.listdir(f"/proc/{server.process.pid}/task"):
        os.sched_setaffinity(int(task), processors[1:])
    took = {"alone": [], "ship": [], "hash": []}

    def load(arm):
        before = cpu_ns(process.pid)
        subprocess.run([client, "memcached", str(port), "20", "5000"], check=True, stdout=subprocess.DEVNULL,
                       preexec_fn=lambda: os.sched_setaffinity(0, processors[:1]))
        took[arm].append((cpu_ns(process.pid) - before) / 100000)

    traces, folder = fresh("effect")
    load("alone")
    took["alone"].clear()
    for turn in range(10):
        for arm in ("alone", "ship", "hash") if turn % 2 else ("hash", "ship", "alone"):
            if arm == "alone":
                load(arm)
            elif arm == "hash":
                with Hashes(large, folder):
                    load(arm)
            else:
                with Shipper(server, traces, "--every", "100ms"), Feeder(large, folder):
                    wait_for(lambda: os.path.exists(f"{traces}/.shipped") or os.path.exists(f"{folder}/.shipped"))
                    load(arm)
    process.terminate()
    process.wait()
    for arm, what in ("ship", "dial9 ship --raw at full rate"), ("hash", "sha256sum of the same bytes"):
        tell(f"memcached, recorded, per get, beside {what}", "ns", took[arm], 1.01 if arm == "ship" else 0, "alone", quartiles(took["alone"])[1],
             [a / b for a, b in zip(took[arm], took["alone"])])


small, large = (max(glob.glob(f"{scratch}/{name}/*/trace.*.bin.zst"), key=os.path.getsize) for name in ("small", "large"))
print(f"segments of {os.path.getsize(small) / 1e6:.2f} and {os.path.getsize(large) / 1e6:.2f} MB")
with Store("--discard", "--tls-key", f"{scratch}/key.pem", "--tls-cert", f"{scratch}/cert.pem") as server:
    pace(small, server)
    idle(small, server)
    memory(large, server)
with Store("--dir", f"{scratch}/s3") as server:
    rate(large, server)
    if shutil.which("memcached"):
        effect(large, server)
END
