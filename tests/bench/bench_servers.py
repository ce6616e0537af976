#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU per request of real servers, recorded and not, in turn: one line for figures.py each.

    bench_servers.py PRELOAD_LIBRARY CLIENT [SOUP_SERVER [ROUNDS]]

memcached of Debian (libevent) answers CLIENT of tests/real, nghttpd (libev) h2load, SOUP_SERVER (libsoup 3, GLib) answers ab.  Three servers of a
kind run at once, two as alone and one recorded; in each round each of them gets the same load, in an order that
changes, while the others sleep.  What is compared is the CPU time of all threads of a server, the recorder's
included.  All servers share one processor, and who asks them has another: where the kernel would put them changes
what a request costs by more than recording does.  Where a program is missing that server is left out, with a
word why.
"""

import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

BUDGET = 1.02
FOR_SERVERS, *FOR_CLIENTS = sorted(os.sched_getaffinity(0))


def cpu_ns(pid):
    """ns on a CPU of the threads of |pid| that it has without us too, and of all; none of them ends."""
    total, own = 0, 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="ascii") as file:
            ours = file.read().startswith("dial9-")
        with open(f"/proc/{pid}/task/{thread}/schedstat", encoding="ascii") as file:
            ns = int(file.read().split()[0])
        total += ns
        own += 0 if ours else ns
    return own, total


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port):
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on {port}")


def apart():
    os.sched_setaffinity(0, FOR_CLIENTS or {FOR_SERVERS})


class Server:
    def __init__(self, start, environment):
        self.process, self.port = start(environment)
        wait_for(self.port)

    def load(self, client):
        """ns of CPU per request: of the loop's thread, and of all threads."""
        before = cpu_ns(self.process.pid)
        command, requests = client(self.port)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=apart)
        return [(b - a) / requests for a, b in zip(before, cpu_ns(self.process.pid))]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def memcached(environment):
    port = free_port()
    user = ["-u", "root"] if os.getuid() == 0 else []
    return subprocess.Popen(["memcached", *user, "-U", "0", "-l", "127.0.0.1", "-p", str(port), "-t", "1"],
                            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), port


def gets(client):
    return lambda port: ([client, "memcached", str(port), "20", "1000"], 20 * 1000)


def nghttpd(folder):
    def start(environment):
        port = free_port()
        return subprocess.Popen(["nghttpd", "--no-tls", "-d", folder, str(port)], env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), port
    return start


def h2load(port):
    return ["h2load", "-n", "40000", "-c", "10", "-m", "4", f"http://127.0.0.1:{port}/index.html"], 40000


def soup(program):
    def start(environment):
        process = subprocess.Popen([program], env=environment, stdout=subprocess.PIPE, text=True)
        return process, int(process.stdout.readline().split()[-1])
    return start


def ab(port):
    return ["ab", "-q", "-n", "4000", "-c", "10", f"http://127.0.0.1:{port}/"], 4000


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high


def measure(what, start, client, environments, rounds):
    servers = [Server(start, environment) for environment in environments]
    for server in servers:
        server.load(client)  # warm
    took = [[], [], []]
    for number in range(rounds):
        for which in ((0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1))[number % 4]:
            took[which].append(servers[which].load(client))
    for server in servers:
        server.stop()
    for part, threads in enumerate(("of the loop", "of all threads")):
        plain, again, recorded = ([times[part] for times in server] for server in took)
        if part == 0:
            same = statistics.median(b / a for a, b in zip(plain, again))
            print("SAME", f"{what}, not recorded", f"{same:.6g}", sep="\t")
        peers = [(a + b) / 2 for a, b in zip(plain, again)]
        middle, low, high = quartiles([r / p for r, p in zip(recorded, peers)])
        print("FIGURE", f"{what}, CPU {threads}", f"{statistics.median(recorded) / 1e3:.6g}", "us",
              "not recorded", f"{statistics.median(peers) / 1e3:.6g}", f"{middle:.6g}", f"{low:.6g}",
              f"{high:.6g}", BUDGET, sep="\t", flush=True)


def missing(*programs):
    for program in programs:
        if not shutil.which(program):
            print(f"{program} is not installed (Debian: memcached nghttp2-server nghttp2-client apache2-utils): left out")
            return True
    return False


def main():
    preload, client, *rest = sys.argv[1:]
    rounds = int(rest[1]) if len(rest) > 1 else 24
    os.sched_setaffinity(0, {FOR_SERVERS})
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "index.html"), "w", encoding="ascii") as file:
            file.write("hello\n")
        plain = {name: value for name, value in os.environ.items() if not name.startswith("DIAL9_")}
        recorded = dict(plain, LD_PRELOAD=preload, DIAL9_TRACE_DIR=os.path.join(folder, "trace"))
        environments = [plain, plain, recorded]
        done = 0
        if not missing("memcached"):
            measure("memcached, per get", memcached, gets(client), environments, rounds)
            done += 1
        if not missing("nghttpd", "h2load"):
            measure("nghttpd under h2load, per request", nghttpd(folder), h2load, environments, rounds)
            done += 1
        if not rest or not os.access(rest[0], os.X_OK):
            print("no server on libsoup 3 was built (Debian: libsoup-3.0-dev): left out")
        elif not missing("ab"):
            measure("libsoup server under ab, per request", soup(rest[0]), ab, environments, rounds)
            done += 1
    return 0 if done else 77


sys.exit(main())
