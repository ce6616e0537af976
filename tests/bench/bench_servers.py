#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPU per request of real servers, recorded and not, in turn: one line for figures.py each.

    bench_servers.py PRELOAD_LIBRARY CLIENT [HTTP_SERVER [SOUP_SERVER [ROUNDS [ONLY]]]]

memcached of Debian (libevent) answers CLIENT of tests/real, HTTP_SERVER (libevent's evhttp) ab, nghttpd (libev) h2load, SOUP_SERVER
(libsoup 3, GLib) ab, pgbouncer (libevent) before PostgreSQL pgbench, and python3 with gevent (libev) a client of its own; of them
all those whose names begin with ONLY.  Four servers of a kind run
at once: two as alone, one recorded without samples, one recorded with them, as is the default.  In each round each of them
gets the same load, in an order that changes, while the others sleep; after four rounds they are started anew.  What is compared is the CPU time of all threads of a
server, the recorder's included.  All servers share one processor, and who asks them has another: where the kernel would
put them changes what a request costs by more than recording does.  Where a program is missing that server is left out, with
a word why.

evhttp's requests a second, too: as above, where the recorder's thread has to share the server's processor, and with another
one for it that is idle, where ab shares the server's.  And with 50 and with 1,000 requests a second, how long the recorder's
thread is on a CPU in a second; and the bytes of a request by type of event.

Likewise, as flight-memcached, flight-nghttpd and flight-libsoup: two alone, one in flight mode, one in flight mode with eight
triggers that do not fire.  Where there is valgrind, it counts what instructions of the loop's thread a request takes, which
does not depend on what else the machine does.
"""

import glob
import os
import pwd
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

BUDGET_OF_SAMPLES = 1.005
TRIGGERS = ("poll > 10s; poll > 20s where loop ~ none; blocked > 1h; lateness > 10s; queue > 1000000; polls > 1000000000/s; "
            "wakes > 1000000000/s; loss > 1000000000")
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
    def __init__(self, start, environment, where=apart):
        self.where = where  # puts who asks on its processor
        self.process, self.port = start(environment)
        wait_for(self.port)

    def load(self, client):
        """ns per request: of the loop's thread on a CPU, of all threads, and by the clock."""
        before, began = cpu_ns(self.process.pid), time.monotonic_ns()
        command, requests = client(self.port)
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=self.where)
        took = time.monotonic_ns() - began
        return [(b - a) / requests for a, b in zip(before, cpu_ns(self.process.pid))] + [took / requests]

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


UNDER = []  # the command that servers run under


def memcached(environment):
    port = free_port()
    user = ["-u", "root"] if os.getuid() == 0 else []
    return subprocess.Popen([*UNDER, "memcached", *user, "-U", "0", "-l", "127.0.0.1", "-p", str(port), "-t", "1", "-c", "256"],
                            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), port


def gets(client):
    return lambda port: ([client, "memcached", str(port), "20", "1000"], 20 * 1000)


def nghttpd(folder):
    def start(environment):
        port = free_port()
        return subprocess.Popen([*UNDER, "nghttpd", "--no-tls", "-d", folder, str(port)], env=environment,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), port
    return start


def h2load(port):
    return ["h2load", "-n", "40000", "-c", "10", "-m", "4", f"http://127.0.0.1:{port}/index.html"], 40000


def announced(program):
    """A server that prints where it listens, at the end of its first line."""
    def start(environment):
        process = subprocess.Popen([*UNDER, program], env=environment, stdout=subprocess.PIPE, text=True)
        return process, int(process.stdout.readline().split()[-1])
    return start


def ab(port):
    return ["ab", "-q", "-n", "4000", "-c", "10", f"http://127.0.0.1:{port}/"], 4000


def ab_kept_alive(port):
    return ["ab", "-q", "-k", "-n", "20000", "-c", "10", f"http://127.0.0.1:{port}/"], 20000


GEVENT_SERVER = """
from gevent import config
config.loop = "libev-cext"
from gevent.server import StreamServer
def echo(sock, _):
    while data := sock.recv(16):
        sock.sendall(data)
server = StreamServer(("127.0.0.1", 0), echo)
server.start()
print(server.server_port, flush=True)
server.serve_forever()
"""

GEVENT_CLIENT = """
import socket, sys
port, connections, messages = map(int, sys.argv[1:])
socks = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
for _ in range(messages):
    for sock in socks:
        sock.sendall(b"ping")
    for sock in socks:
        assert sock.recv(16) == b"ping"
"""


def gevent(environment):
    process = subprocess.Popen(["/usr/bin/python3", "-c", GEVENT_SERVER], env=environment, stdout=subprocess.PIPE, text=True)
    return process, int(process.stdout.readline())


def pings(port):
    return ["/usr/bin/python3", "-c", GEVENT_CLIENT, str(port), "10", "1000"], 10 * 1000


def become_nobody():
    """Neither PostgreSQL nor pgbouncer runs as root."""
    if os.getuid() == 0:
        os.setgroups([])
        os.setgid(NOBODY.pw_gid)
        os.setuid(NOBODY.pw_uid)


NOBODY = pwd.getpwnam("nobody")


class Postgres:
    """A PostgreSQL of its own in |folder|, with pgbench's tables."""

    def __init__(self, programs, folder):
        self.programs, self.folder, self.port = programs, os.path.join(folder, "postgres"), free_port()
        os.mkdir(self.folder)
        if os.getuid() == 0:
            os.chmod(folder, 0o755)
            os.chown(self.folder, NOBODY.pw_uid, NOBODY.pw_gid)
        data = os.path.join(self.folder, "data")
        self.run("initdb", "-D", data, "-A", "trust", "-U", "bench", "--no-sync")
        self.process = subprocess.Popen(
            [os.path.join(programs, "postgres"), "-D", data, "-p", str(self.port), "-h", "127.0.0.1", "-k", self.folder],
            cwd=self.folder, preexec_fn=become_nobody, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.port)
        self.run("pgbench", "-i", "-q", "-h", "127.0.0.1", "-p", str(self.port), "-U", "bench", "postgres")

    def run(self, program, *arguments):
        subprocess.run([os.path.join(self.programs, program), *arguments], check=True, cwd=self.folder,
                       preexec_fn=become_nobody, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def pgbouncer(self, environment):
        port = free_port()
        path = os.path.join(self.folder, f"{port}.ini")
        with open(path, "w", encoding="ascii") as file:
            file.write(f"""[databases]
postgres = host=127.0.0.1 port={self.port} user=bench dbname=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
logfile = /dev/null
log_connections = 0
log_disconnections = 0
""")
        environment = dict(environment)
        if "DIAL9_TRACE_DIR" in environment:
            environment["DIAL9_TRACE_DIR"] = os.path.join(self.folder, f"trace-{port}")
        return subprocess.Popen([shutil.which("pgbouncer", path="/usr/sbin:/usr/bin"), "-q", path], env=environment, cwd=self.folder,
                                preexec_fn=become_nobody, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL), port

    def pgbench(self, port):
        return [os.path.join(self.programs, "pgbench"), "-S", "-n", "-c", "10", "-t", "400",
                "-h", "127.0.0.1", "-p", str(port), "-U", "bench", "postgres"], 10 * 400

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()


def quartiles(values):
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return middle, low, high


ORDERS = ((0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2), (2, 0, 3, 1))


def figure(what, threads, own, name, peer, budget):
    """|own| times against those of |peer|, round by round."""
    middle, low, high = quartiles([a / b for a, b in zip(own, peer)])
    print("FIGURE", f"{what}, CPU {threads}", f"{statistics.median(own) / 1e3:.6g}", "us", name,
          f"{statistics.median(peer) / 1e3:.6g}", f"{middle:.6g}", f"{low:.6g}", f"{high:.6g}", budget, sep="\t", flush=True)


def in_turn(start_all, rounds, load):
    """What |load| says of each server, round by round.  They are started anew now and then: where its memory lies makes a
    process dearer or cheaper than its like by some percent, as long as it lives."""
    servers, took = [], [[] for _ in ORDERS[0]]
    for number in range(rounds):
        if number % len(ORDERS) == 0:
            for server in servers:
                server.stop()
            servers = start_all()
            for server in servers:
                load(server)  # warm
        for which in ORDERS[number % len(ORDERS)]:
            took[which].append(load(servers[which]))
    for server in servers:
        server.stop()
    return took


def times_of(start, client, environments, rounds):
    """Of each server its loads: CPU of the loop's thread, of all, and time by the clock."""
    return in_turn(lambda: [Server(start, environment) for environment in environments], rounds,
                   lambda server: server.load(client))


def measure(what, start, client, environments, rounds, budget=0, loop_budget=0, recorder_budget=0):
    """|budget|: of all threads, recorder and samples included; of the recorder's thread in ns; 0: none."""
    took = times_of(start, client, environments, rounds)
    for part, threads in enumerate(("of the loop", "of all threads")):
        plain, again, unsampled, sampled = ([times[part] for times in server] for server in took)
        if part == 0:
            same = statistics.median(b / a for a, b in zip(plain, again))
            print("SAME", f"{what}, not recorded", f"{same:.6g}", sep="\t")
        figure(what, threads, sampled, "not recorded", [(a + b) / 2 for a, b in zip(plain, again)], budget if part else loop_budget)
        figure(f"{what}, samples", threads, sampled, "recorded without samples", unsampled, BUDGET_OF_SAMPLES)
    middle, low, high = (f"{ns:.6g}" for ns in quartiles([load[1] - load[0] for load in took[2]]))
    print("FIGURE", f"{what}, recorder's thread, without samples", middle, "ns", "", 0, middle, low, high, recorder_budget, sep="\t", flush=True)


# ---- evhttp: throughput, and few requests ----

THROUGHPUT_BUDGET = -0.966  # at least
RECORDER_BUDGET = 2  # ms/s at 50 requests a second


def throughput(what, times, budget):
    """Requests a second of the sampled server against those that are not recorded."""
    plain, again, _, sampled = ([load[2] for load in server] for server in times)
    both = [(a + b) / 2 for a, b in zip(plain, again)]
    middle, low, high = quartiles([b / a for a, b in zip(sampled, both)])
    print("FIGURE", what, f"{1e9 / statistics.median(sampled):.6g}", "requests/s", "not recorded",
          f"{1e9 / statistics.median(both):.6g}", f"{middle:.6g}", f"{low:.6g}", f"{high:.6g}", budget, sep="\t", flush=True)


def spread(server):
    """The recorder's threads may run wherever there is room."""
    for thread in os.listdir(f"/proc/{server.process.pid}/task"):
        with open(f"/proc/{server.process.pid}/task/{thread}/comm", encoding="ascii") as file:
            if file.read().startswith("dial9-"):
                os.sched_setaffinity(int(thread), {FOR_SERVERS, *FOR_CLIENTS})


def measure_throughput(what, start, client, environments, rounds):
    throughput(f"{what}, requests a second, its processor busy", times_of(start, client, environments, rounds),
               THROUGHPUT_BUDGET)
    if not FOR_CLIENTS:
        return

    def start_all():
        servers = [Server(start, environment, lambda: None) for environment in environments]
        for server in servers:
            server.load(client)  # the recorder has its threads
            spread(server)
        return servers

    throughput(f"{what}, requests a second, another processor idle", in_turn(start_all, rounds, lambda server: server.load(client)), 0)


def measure_off(what, start, client, environments, rounds):
    """While nothing is recorded: calls go through hooks, and a program of one thread has a second, for which libc locks."""
    plain, again, off, off_again = ([load[0] for load in server] for server in times_of(start, client, environments, rounds))
    figure(f"{what}, switched off", "of the loop", [(a + b) / 2 for a, b in zip(off, off_again)], "not recorded",
           [(a + b) / 2 for a, b in zip(plain, again)], 0)


RATE_CLIENT = """
import socket, sys, time
port, rate, seconds = map(int, sys.argv[1:])
sock = socket.create_connection(("127.0.0.1", port))
sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
due = time.monotonic()
for _ in range(rate * seconds):
    sock.sendall(b"GET / HTTP/1.1\\r\\nHost: bench\\r\\n\\r\\n")
    assert sock.recv(4096)
    due += 1 / rate
    time.sleep(max(0, due - time.monotonic()))
"""


def measure_rate(what, rate, start, environments, rounds):
    """ms of the recorder's thread in a second: without samples, and with them."""
    seconds = 3

    def load(server):
        own, total = cpu_ns(server.process.pid)
        subprocess.run([sys.executable, "-c", RATE_CLIENT, str(server.port), str(rate), str(seconds)], check=True, preexec_fn=apart)
        own, total = (b - a for a, b in zip((own, total), cpu_ns(server.process.pid)))
        return (total - own) / seconds / 1e6

    servers = [Server(start, environment) for environment in environments[2:]]
    orders = ((0, 1), (1, 0))
    took = [[], []]
    for number in range(max(2, rounds // 4)):
        for which in orders[number % 2]:
            took[which].append(load(servers[which]))
    for server in servers:
        server.stop()
    for values, how in zip(took, (", without samples", "")):
        middle, low, high = quartiles(values)
        budget = RECORDER_BUDGET if rate == 50 else 0
        print("FIGURE", f"{what}, {rate} requests a second, recorder's thread{how}", f"{middle:.6g}", "ms/s", "", 0,
              f"{middle:.6g}", f"{low:.6g}", f"{high:.6g}", budget, sep="\t", flush=True)


BYTES_BY_TYPE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bytes_by_type.mjs")


def measure_bytes(what, start, client, environment):
    """Bytes a request by type of event, those of 1 % and more, and on disk."""
    if not shutil.which("node"):
        return left_out("node is not installed")
    folder = environment["DIAL9_TRACE_DIR"]
    shutil.rmtree(folder, ignore_errors=True)
    server = Server(start, environment)
    server.load(client)
    server.stop()
    requests = client(0)[1]
    rows = [line.split() for line in subprocess.run(["node", BYTES_BY_TYPE, folder], check=True, stdout=subprocess.PIPE, text=True)
            .stdout.splitlines()]
    stored = int(rows.pop()[1])
    total = sum(int(size) for _, size, _ in rows)

    def bytes_row(name, size):
        each = f"{size / requests:.6g}"
        print("FIGURE", f"{what}, {name}", each, "bytes", "", 0, each, each, each, 0, sep="\t", flush=True)

    bytes_row("on disk", stored)
    bytes_row(f"unpacked, {sum(int(events) for _, _, events in rows) / requests:.3g} events", total)
    for name, size, _ in rows:
        if int(size) >= total / 100:
            bytes_row(f"unpacked, of {'schemas, texts and stacks' if name == '-' else name}", int(size))
    return True


def instructions(start, client, environment, folder, loads):
    """Of each thread, in |loads| loads.  memcached lowers its limit of descriptors, and valgrind keeps twelve for itself."""
    out = os.path.join(folder, "callgrind")
    for file in glob.glob(out + "*"):
        os.unlink(file)
    UNDER[:] = ["prlimit", "--nofile=268:268", "valgrind", "-q", "--tool=callgrind", "--separate-threads=yes", f"--callgrind-out-file={out}"]
    server = Server(start, environment)
    UNDER.clear()
    for _ in range(loads):
        server.load(client)
    server.stop()
    counts = []
    for name in sorted(glob.glob(out + "-*")):
        with open(name, encoding="utf-8") as file:
            counts += [int(line.split()[1]) for line in file if line.startswith("totals:")]
    return counts


def instructions_a_request(start, client, environment, folder):
    """Of the thread that answers: what three loads take more than one, per request."""
    few, many = (instructions(start, client, environment, folder, loads) for loads in (1, 3))
    return max(b - a for a, b in zip(few, many)) / (2 * client(0)[1])


def count(what, own, name, peer):
    ratio = f"{own / peer:.6g}"
    print("FIGURE", what, f"{own:.0f}", "instructions", name, f"{peer:.0f}", ratio, ratio, ratio, 0, sep="\t", flush=True)


def measure_flight(what, start, client, folder, environments, rounds):
    plain, flight, armed = environments
    took = times_of(start, client, [plain, plain, flight, armed], rounds)
    for part, threads in enumerate(("of the loop", "of all threads")):
        alone, again, unarmed, ready = ([times[part] for times in server] for server in took)
        both = [(a + b) / 2 for a, b in zip(alone, again)]
        figure(f"{what}, flight mode", threads, unarmed, "not recorded", both, 0)
        figure(f"{what}, flight mode, 8 triggers", threads, ready, "not recorded", both, 0)
        figure(f"{what}, 8 triggers", threads, ready, "flight mode without", unarmed, 0)
    if shutil.which("valgrind"):
        alone, unarmed, ready = (instructions_a_request(start, client, environment, folder) for environment in environments)
        count(f"{what}, flight mode", unarmed, "not recorded", alone)
        count(f"{what}, 8 triggers", ready, "flight mode without", unarmed)
    return True


def left_out(why):
    print(f"{why}: left out")


def found(*programs):
    for program in programs:
        if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
            return left_out(f"{program} is not installed")
    return True


def built(programs, number, what):
    if len(programs) > number and os.access(programs[number], os.X_OK):
        return True
    return left_out(f"no server on {what} was built")


def measure_pgbouncer(folder, environments, rounds):
    versions = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
    if not versions:
        return left_out("PostgreSQL is not installed")
    postgres = Postgres(versions[-1], folder)
    measure("pgbouncer under pgbench, per transaction", postgres.pgbouncer, postgres.pgbench, environments, rounds)
    postgres.stop()
    return True


def measure_gevent(environments, rounds):
    if subprocess.run(["/usr/bin/python3", "-c", "import gevent"], check=False, stderr=subprocess.DEVNULL).returncode:
        return left_out("python3-gevent is not installed")
    measure("gevent server, per message", gevent, pings, environments, rounds)
    return True


def main():
    preload, client, *rest = sys.argv[1:]
    servers, (rounds, only) = rest[:2], (rest[2:] + ["24", ""][len(rest[2:]):])
    os.sched_setaffinity(0, {FOR_SERVERS})
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "index.html"), "w", encoding="ascii") as file:
            file.write("hello\n")
        plain = {name: value for name, value in os.environ.items() if not name.startswith("DIAL9_")}
        recorded = dict(plain, LD_PRELOAD=preload, DIAL9_TRACE_DIR=os.path.join(folder, "trace"))
        environments = [plain, plain, dict(recorded, DIAL9_CPU_PROFILE_ENABLED="false"), recorded]

        def row(what, start, load, *budgets):
            measure(what, start, load, environments, int(rounds), *budgets)
            return True

        def http_rows(start):
            what = "evhttp server"
            off = dict(recorded, DIAL9_ENABLED="no")
            measure_off(f"{what} under ab, per request", start, ab_kept_alive, [plain, plain, off, off], int(rounds))
            measure_throughput(f"{what} under ab", start, ab_kept_alive, environments, int(rounds))
            for rate in (50, 1000):
                measure_rate(what, rate, start, environments, int(rounds))
            return True

        flight = dict(recorded, DIAL9_MODE="flight")
        in_flight = [plain, flight, dict(flight, DIAL9_TRIGGERS=TRIGGERS)]

        def flight_row(what, start, load):
            return measure_flight(what, start, load, folder, in_flight, int(rounds))

        rows = {
            "memcached": lambda: found("memcached") and row("memcached, per get", memcached, gets(client), 1.01),
            "evhttp": lambda: built(servers, 0, "libevent's evhttp") and found("ab")
            and row("evhttp server under ab, per request", announced(servers[0]), ab_kept_alive, 1.045, 1.03, 200),
            "http-throughput": lambda: built(servers, 0, "libevent's evhttp") and found("ab")
            and http_rows(announced(servers[0])),
            "http-bytes": lambda: built(servers, 0, "libevent's evhttp") and found("ab")
            and measure_bytes("evhttp server under ab, per request", announced(servers[0]), ab_kept_alive, recorded),
            "nghttpd": lambda: found("nghttpd", "h2load")
            and row("nghttpd under h2load, per request", nghttpd(folder), h2load, 1.03),
            "libsoup": lambda: built(servers, 1, "libsoup 3 (Debian: libsoup-3.0-dev)") and found("ab")
            and row("libsoup server under ab, per request", announced(servers[1]), ab, 1.02),
            "pgbouncer": lambda: found("pgbouncer") and measure_pgbouncer(folder, environments, int(rounds)),
            "gevent": lambda: measure_gevent(environments, int(rounds)),
            "flight-memcached": lambda: found("memcached") and flight_row("memcached, per get", memcached, gets(client)),
            "flight-nghttpd": lambda: found("nghttpd", "h2load")
            and flight_row("nghttpd under h2load, per request", nghttpd(folder), h2load),
            "flight-libsoup": lambda: built(servers, 1, "libsoup 3 (Debian: libsoup-3.0-dev)") and found("ab")
            and flight_row("libsoup server under ab, per request", announced(servers[1]), ab),
        }
        done = [row_of() for name, row_of in rows.items() if name.startswith(only)]
    return 0 if any(done) else 77


sys.exit(main())
