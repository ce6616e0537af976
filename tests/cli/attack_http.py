# SPDX-License-Identifier: Apache-2.0
# Clients that mean harm: attack_http.py URL WAY.  Each ends with one request of somebody who means none, and prints what that
# one got.
import os
import select
import signal
import socket
import sys
import urllib.parse

url = urllib.parse.urlsplit(sys.argv[1])
way = sys.argv[2]
host = f'Host: {url.netloc}\r\n'


def connect():
    return socket.create_connection((url.hostname, url.port), 60)


def read_all(connection):
    answer = b''
    try:
        while piece := connection.recv(1 << 16):
            answer += piece
    except ConnectionResetError:
        pass
    return answer


def status(answer):
    return answer.split(b' ', 2)[1].decode() if answer.startswith(b'HTTP/') else 'nothing'


def ask(path='api/segments'):
    with connect() as connection:
        connection.sendall(f'GET {url.path}{path} HTTP/1.1\r\n{host}Connection: close\r\n\r\n'.encode())
        return read_all(connection)


def said(text):
    with connect() as connection:
        try:
            connection.sendall(text)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return status(read_all(connection))


def crowd(beginning, size=700):
    clients = []
    for _ in range(size):
        client = connect()
        try:
            client.sendall(beginning)
        except (BrokenPipeError, ConnectionResetError):
            pass
        clients.append(client)
    return clients


if way == 'silent':
    held = crowd(b'')
elif way == 'slow-writers':
    held = crowd(f'GET {url.path} HTTP/1.1\r\n{host}X: '.encode())
elif way == 'slow-readers':
    held = [connect() for _ in range(300)]
    for client in held:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.sendall(f'GET {url.path}segment/web-1%2Ftrace.0.bin HTTP/1.1\r\n{host}\r\n'.encode())
elif way == 'pipelined':
    held = connect()
    held.sendall(f'GET {url.path}viewer/app.js HTTP/1.1\r\n{host}\r\n'.encode() * 500)
elif way == 'long-body':
    print(said(f'GET {url.path} HTTP/1.1\r\n{host}Content-Length: 1000000000\r\n\r\n'.encode() + b'x' * 100000))
elif way == 'endless-body':
    print(said(f'GET {url.path} HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n'.encode() + b'1000\r\n' + b'x' * 4096 + b'\r\n'))
elif way == 'long-head':
    print(said(f'GET {url.path} HTTP/1.1\r\n{host}'.encode() + b'X: y\r\n' * 30000 + b'\r\n'))
elif way == 'long-line':
    print(said(f'GET {url.path}?{"x" * 200000} HTTP/1.1\r\n{host}\r\n'.encode()))
elif way == 'many-segments':
    print(said(f'GET {url.path}api/report?{"trace=segment/web-1%2Ftrace.0.bin&" * 1500} HTTP/1.1\r\n{host}Connection: close\r\n\r\n'.encode()))
elif way == 'no-http':
    print(said(os.urandom(3000) + b'\r\n\r\n'))
elif way == 'known-rests':
    # Who has the token gives way to nobody who has not, however many these are and however long it has rested.
    held = connect()
    held.sendall(f'GET {url.path}viewer/icon.svg HTTP/1.1\r\n{host}\r\n'.encode())
    held.recv(1 << 16)
    silent = crowd(b'')
    held.sendall(f'GET {url.path}api/segments HTTP/1.1\r\n{host}Connection: close\r\n\r\n'.encode())
    print(status(read_all(held)))
elif way == 'known-reads':
    held = connect()
    held.sendall(f'GET {url.path}segment/web-1%2Ftrace.0.bin HTTP/1.1\r\n{host}Connection: close\r\n\r\n'.encode())
    held.recv(1)
    silent = crowd(b'')
    print('all of it' if len(read_all(held)) >= int(sys.argv[3]) else 'less than announced')
elif way == 'guesses':
    print(*sorted({said(f'GET /{i:032x}/ HTTP/1.1\r\n{host}Connection: close\r\n\r\n'.encode()) for i in range(1000)}))
elif way == 'one-report':
    held = crowd(f'GET {url.path}api/report?trace=segment%2Fweb-1%2Ftrace.0.bin HTTP/1.1\r\n{host}Connection: close\r\n\r\n'.encode(), 200)
    print(*sorted({status(read_all(client)) for client in held}))
elif way == 'no-targets':
    for target in ('http://evil.example/', f'http://evil.example{url.path}', '*', f'{url.path}segment/%', f'{url.path}segment/%00',
                   f'{url.path}?%', f'{url.path}?trace', f'{url.path}viewer/app.js/', f'{url.path}segment/..%5c..%5cetc',
                   f'{url.path}segment/web-1%2f%2e%2e%2fweb-1%2ftrace.0.bin', f'{url.path}segment/web-1//trace.0.bin',
                   f'{url.path}api/segments%00', f'{url.path}segment/web-1%2Ftrace.0.bin?from=1e999'):
        print(target.replace(url.path, '/TOKEN/'), said(f'GET {target} HTTP/1.1\r\n{host}Connection: close\r\n\r\n'.encode()))
    for method in ('OPTIONS', 'TRACE', 'PUT', 'PATCH', 'POST'):
        print(method, said(f'{method} {url.path} HTTP/1.1\r\n{host}Origin: http://evil.example\r\nConnection: close\r\n\r\n'.encode()))
    for headers in (f'{host}Host: evil.example\r\n', f'Host: evil.example\r\n{host}', 'Host:\r\n', '', f'Host: {url.netloc}.\r\n',
                    f'Host: user@{url.netloc}\r\n', f'{host}Content-Length: -1\r\n', f'{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n'):
        print(repr(headers.replace(url.netloc, 'HOST')), said(f'GET {url.path} HTTP/1.1\r\n{headers}Connection: close\r\n\r\n'.encode()))
elif way == 'busy':
    # While the server is at something else, as many wait for it as the kernel lets wait.
    server, held = int(sys.argv[3]), []
    with open('/proc/sys/net/core/somaxconn', encoding='ascii') as limit:
        wanted = min(300, int(limit.read()))
    os.kill(server, signal.SIGSTOP)
    for _ in range(wanted):
        client = socket.socket()
        client.setblocking(False)
        client.connect_ex((url.hostname, url.port))
        held.append(client)
    there = len(select.select([], held, [], 0)[1])
    os.kill(server, signal.SIGCONT)
    print('all are there' if there == wanted else f'{there} of {wanted} are there')
elif way == 'cut':
    held = connect()
    held.sendall(f'GET {url.path}segment/web-1%2Ftrace.0.bin HTTP/1.1\r\n{host}Connection: close\r\n\r\n'.encode())
    held.recv(100)
    os.truncate(sys.argv[3], 1000)
    print('all of it' if len(read_all(held)) >= int(sys.argv[4]) else 'less than announced')
print('then', status(ask()))
