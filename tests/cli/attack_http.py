# SPDX-License-Identifier: Apache-2.0
# Clients that mean harm: attack_http.py URL WAY.  Each ends with one request of somebody who means none, and prints what that
# one got.
import os
import select
import signal
import socket
import sys
import time
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


def sent(query, body, headers='', path='api/report', length=None, own=host, token=url.path):
    """What is answered to a piece of a file; 'left': nothing, or what went wrong."""
    size = f'Content-Length: {len(body) if length is None else length}\r\n'
    with connect() as connection:
        try:
            connection.sendall(f'POST {token}{path}?{query} HTTP/1.1\r\n{own}{headers}{size}Connection: close\r\n\r\n'.encode() + body)
        except (BrokenPipeError, ConnectionResetError):
            pass
        answer = read_all(connection)
        code, text = status(answer), answer.partition(b'\r\n\r\n')[2].decode(errors='replace')
        return code if code in ('200', '204') or text.startswith('<') or '\n' in text.strip() else f'{code} {text.strip()}'


def begun(name, length=1000, send=b'TRC'):
    """A connection that is in the middle of a piece."""
    connection = connect()
    connection.sendall(f'POST {url.path}api/report?upload={name}&name=x.bin HTTP/1.1\r\n{host}Content-Length: {length}\r\n\r\n'.encode() + send)
    return connection


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
    print(said(f'GET {url.path} HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n'.encode() + (b'10000\r\n' + b'x' * 65536 + b'\r\n') * 6))
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
elif way == 'posts':
    foreign, garbage = 'Origin: http://evil.example\r\n', b'this is no trace'
    for what, answer in (
            ('another token', sent('name=x', garbage, token='/' + '0' * 32 + '/')),
            ('another host', sent('name=x', garbage, own='Host: evil.example\r\n')),
            ('another origin', sent('name=x', garbage, foreign)),
            ('no origin that a browser would name', sent('name=x', garbage, 'Origin: null\r\n')),
            ('another scheme', sent('name=x', garbage, f'Origin: https://{url.netloc}\r\n')),
            ('another site', sent('name=x', garbage, 'Sec-Fetch-Site: cross-site\r\n')),
            ('a form of another site', sent('', garbage, foreign + 'Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n', path='')),
            ('the page', sent('', garbage, path='')),
            ('the listing', sent('', garbage, path='api/segments')),
            ('own origin', sent('name=x', garbage, f'Origin: http://{url.netloc}\r\n')),
            ('no name', sent('', garbage)),
            *((f'named {name}', sent(f'name={name}', garbage)) for name in ('', '.', '..', '-', 'a%2Fb', '%00x', 'x' * 300)),
            *((f'{numbers}', sent(f'name=x&{numbers}', garbage)) for numbers in
              ('bytes=-1', 'bytes=1e3', 'bytes=', 'bytes=99999999999999999999', 'at=%201', 'file=x', 'upload=' + 'y' * 65)),
            ('nothing', sent('name=x', b'')),
            ('no length', sent('name=x', b'', length='0\r\nX: y')),
            ('a length below 0', sent('name=x', b'', length=-1)),
            ('a length that is none', sent('name=x', b'', length='many')),
            ('more than a piece', sent('name=x', b'x' * (257 << 10))),
            ('a claim of more', sent('name=x', b'', length=1 << 40)),
            ('more than 1 GiB', sent(f'name=x&bytes={(1 << 30) + 1}', garbage)),
            ('more than was said', sent('name=x&bytes=3', garbage)),
            ('not the first piece', sent('name=x&bytes=100&at=16', garbage)),
            ('not the first file', sent('name=x&bytes=100&file=1', garbage)),
            ('a file of a number as large as they go', sent('name=x&bytes=100&file=18446744073709551615', garbage)),
            ('in chunks', said(f'POST {url.path}api/report?name=x HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n'.encode()
                               + b'3\r\nTRC\r\n0\r\n\r\n')),
            ('endless chunks', said(f'POST {url.path}api/report?name=x HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n'.encode()
                                    + (b'10000\r\n' + b'x' * 65536 + b'\r\n') * 6)),
            ('a first piece', sent('name=x&bytes=40', garbage)),
            ('the same again', sent('name=x&bytes=40', garbage)),
            ('the last piece, of another file', sent('name=y&bytes=40&at=16&file=1', garbage[:8] + garbage)),
            ('a first piece', sent('name=x&bytes=40', garbage)),
            ('another file of that name', sent('name=x&bytes=40&at=16&file=1', garbage)),
            ('the piece behind one that was refused', sent('name=y&bytes=40&at=16&file=1', garbage)),
            ('a first piece', sent('name=x&bytes=40', garbage)),
            ('a file below the first', sent('name=y&bytes=40&at=16&file=18446744073709551615', garbage)),
            ('a first piece', sent('name=x&bytes=40', garbage)),
            ('a file that leaves one out', sent('name=y&bytes=40&at=16&file=2', garbage)),
            ('garbage', sent('name=trace.0.bin', garbage)),
            ('a terminal\'s orders', sent('name=%1b%5B2J.bin', garbage)),
    ):
        print(f'{what[:40]}: {answer.encode("unicode_escape").decode()}')
elif way == 'post-many-files':
    print(*sorted({sent(f'name=f{i}&bytes=300&at={i}&file={i}', b'x') for i in range(256)}))
    print(sent('name=f256&bytes=300&at=256&file=256', b'x'))
elif way == 'post-cut':
    for _ in range(300):
        begun('cut').close()
    print(sent('upload=next&name=x.bin', b'TRC'))
elif way == 'two-posts':
    print(sent('upload=a&name=x.bin&bytes=6', b'TRC'))
    print(sent('upload=b&name=x.bin', b'TRC'))
    print(sent('upload=b&name=x.bin&bytes=6&at=3', b'TRC'))
    print(sent('upload=a&name=x.bin&bytes=6&at=3', b'TRC'))
    print(sent('upload=b&name=x.bin', b'TRC'))
elif way == 'post-leaves':
    # The report of a client that does not wait for it keeps nobody out.
    with open(sys.argv[3], 'rb') as trace:
        data = trace.read()
    leaver = begun('a', len(data), data)
    time.sleep(0.05)
    leaver.close()
    print(sent('upload=b&name=x.bin', b'TRC'))
elif way == 'post-silent':
    # Neither who sends a byte now and then nor who is silent keeps others out for ever.
    held = [begun('c') for _ in range(300)]
    print(sent('upload=a&name=x.bin&bytes=100', b'TRC'))
    first, answer = sent('upload=b&name=x.bin', b'TRC'), ''
    while not answer.startswith('422'):
        answer = sent('upload=b&name=x.bin', b'TRC')
    print(first, answer, sep='\n')
    print(sent('upload=a&name=x.bin&bytes=100&at=3', b'TRC'))
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
