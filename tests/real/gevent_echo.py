# SPDX-License-Identifier: Apache-2.0
"""An echo server on gevent, and a plain client in a child process that counts its answers.

	gevent_echo.py CONNECTIONS MESSAGES

Prints "answers N loop NAME".
"""
import subprocess
import sys

CLIENT = """
import socket, sys
port, connections, messages = map(int, sys.argv[1:])
socks = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
answers = 0
for _ in range(messages):
    for sock in socks:
        sock.sendall(b"ping")
    for sock in socks:
        answers += sock.recv(16) == b"ping"
print(answers)
"""

from gevent import config  # noqa: E402

config.loop = "libev-cext"
import gevent  # noqa: E402
from gevent.server import StreamServer  # noqa: E402
from gevent.subprocess import Popen  # noqa: E402


def echo(sock, _address):
    while True:
        data = sock.recv(16)
        if not data:
            return
        sock.sendall(data)


server = StreamServer(("127.0.0.1", 0), echo)
server.start()
client = Popen(
    [sys.executable, "-c", CLIENT, str(server.server_port), *sys.argv[1:]],
    stdout=subprocess.PIPE,
)
answers = int(client.communicate()[0])
for _ in range(10):
    gevent.sleep(0.001)
print("answers", answers, "loop", gevent.get_hub().loop.__class__.__module__)
