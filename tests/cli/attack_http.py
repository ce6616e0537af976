# SPDX-License-Identifier: Apache-2.0
# Clients that mean harm: attack_http.py URL WAY.  Each ends with one request of somebody who means none, and prints what that
# one got.
import http.client
import os
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


def get(connection, path):
    connection.request('GET', url.path + path)
    return connection.getresponse()


def said(text):
    with connect() as connection:
        try:
            connection.sendall(text)
        except (BrokenPipeError, ConnectionResetError):
            pass
        return status(read_all(connection))


def crowd(beginning):
    clients = []
    for _ in range(700):
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
elif way == 'known':
    # Who knows the token keeps its connections, at rest and in the middle of an answer, while others crowd in.
    resting, reading = (http.client.HTTPConnection(url.hostname, url.port, timeout=60) for _ in range(2))
    get(resting, 'api/segments').read()
    answer = get(reading, 'segment/web-1%2Ftrace.0.bin')
    begun = answer.read(100)
    held = crowd(b'')
    print(get(resting, 'api/segments').status, len(begun + answer.read()) == os.path.getsize(sys.argv[3]))
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
elif way == 'cut':
    held = connect()
    held.sendall(f'GET {url.path}segment/web-1%2Ftrace.0.bin HTTP/1.1\r\n{host}Connection: close\r\n\r\n'.encode())
    held.recv(100)
    os.truncate(sys.argv[3], 1000)
    print('all of it' if len(read_all(held)) >= int(sys.argv[4]) else 'less than announced')
print('then', status(ask()))
