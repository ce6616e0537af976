# SPDX-License-Identifier: Apache-2.0
# One HTTP request, byte for byte as it is asked for:
#
#	ask_http.py URL [--method M] [--path P] [--header "NAME: VALUE"] [--show HEADER] [--save FILE]
#
# P replaces the whole path; "TOKEN" in it stands for the URL's.  Prints the status, the header that
# --show names, and the body if it is a line of text.
import socket
import sys
import urllib.parse

url = urllib.parse.urlsplit(sys.argv[1])
method, path, headers, show, save = 'GET', url.path, [], None, None
words = iter(sys.argv[2:])
for word in words:
    value = next(words)
    if word == '--method':
        method = value
    elif word == '--path':
        path = value.replace('TOKEN', url.path.strip('/'))
    elif word == '--header':
        headers.append(value)
    elif word == '--show':
        show = value
    elif word == '--save':
        save = value
if not any(h.lower().startswith('host:') for h in headers):
    headers.append('Host: ' + url.netloc)

with socket.create_connection((url.hostname, url.port), 30) as connection:
    connection.sendall('\r\n'.join([f'{method} {path} HTTP/1.1', *headers, 'Connection: close', '', '']).encode('latin-1'))
    answer = b''
    while True:
        piece = connection.recv(1 << 16)
        if not piece:
            break
        answer += piece
head, _, body = answer.partition(b'\r\n\r\n')
lines = head.decode('latin-1').split('\r\n')
print(lines[0].split(' ')[1] if lines[0] else 'nothing', end='')
for line in lines[1:]:
    if show and line.lower().startswith(show.lower() + ':'):
        print(' ' + line, end='')
if save:
    with open(save, 'wb') as out:
        out.write(body)
elif 0 < len(body) < 300 and b'\n' not in body.rstrip() and b'<' not in body:
    print(' ' + body.rstrip().decode('utf-8', 'replace'), end='')
print()
