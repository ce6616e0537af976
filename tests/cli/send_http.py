# SPDX-License-Identifier: Apache-2.0
# Send files to the server as the page does, and save the report that it makes: send_http.py URL OUT FILE...
import sys
import urllib.parse
import urllib.request

url, out, names = sys.argv[1], sys.argv[2], sys.argv[3:]
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
files = []
for name in names:
    with open(name, 'rb') as file:
        files.append(file.read())
total, at, answer = sum(map(len, files)), 0, b''
for number, data in enumerate(files):
    for start in range(0, len(data), 1 << 18):
        piece = data[start:start + (1 << 18)]
        query = urllib.parse.urlencode({'upload': 'test', 'bytes': total, 'at': at, 'file': number, 'name': names[number]})
        answer = opener.open(f'{url}api/report?{query}', piece).read()
        at += len(piece)
with open(out, 'wb') as report:
    report.write(answer)
