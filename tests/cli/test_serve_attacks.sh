#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Clients and traces that mean harm: `dial9 serve` goes on for everybody else.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$dial9" serve /nonexistent 2>&1 | grep -q 'built without libevent' && skip "built without libevent"

mkdir -p traces/web-1 traces/bad
"$make_trace" process plain traces/web-1/trace.0.bin web-1 30
python3 - <<'EOF'
import gzip, random
trace = open('traces/web-1/trace.0.bin', 'rb').read()
# A segment that is larger than what the kernel takes from us before the client reads.
with open('traces/web-1/trace.0.bin', 'wb') as out:
    out.write(trace + b'\0' * (16 << 20))
with gzip.open('traces/bad/trace.1.bin.gz', 'wb', 9) as out:
    out.write(trace[:5])
    for _ in range(300):
        out.write(b'\1' * (1 << 20))
random.seed(15)
with open('traces/bad/trace.2.bin', 'wb') as out:
    out.write(trace[:200] + random.randbytes(100000))
with open('traces/bad/trace.3.bin', 'wb') as out:
    out.write(b'TRC\0\1' + b'\xff' * 1000)
# A quarter of a gigabyte of frames that reset the time, in 8 KB; a window of 2 GiB; lists in each other; a count of four billion.
with open('traces/bad/trace.4.bin.zst', 'wb') as out:
    out.write(bytes.fromhex('28b52ffd0058280000') + b'TRC\0\1' + bytes.fromhex('02001005') * 2000 + bytes.fromhex('03001005'))
with open('traces/bad/trace.5.bin.zst', 'wb') as out:
    out.write(bytes.fromhex('28b52ffd00a8010000000000'))
lists = b'TRC\0\1' + bytes.fromhex('010100 03004f776e 01 0100 04006c697374 0e 0500f2052a01000000')
with open('traces/bad/trace.6.bin', 'wb') as out:
    out.write(lists + bytes.fromhex('020100000000') + bytes.fromhex('010000000e') * 10000 + bytes(4))
with open('traces/bad/trace.7.bin', 'wb') as out:
    out.write(lists + bytes.fromhex('020100000000 ffffffff 0b'))
EOF
mkfifo traces/web-1/trace.8.bin
: >address
"$dial9" serve traces >address &
server=$!
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
until url=$(cat address) && [ -n "$url" ]; do
	kill -0 $server || exit 1
done
attack() {
	say "$1"
	python3 "$top_srcdir/tests/cli/attack_http.py" "$url" "$@"
}

for way in silent slow-writers slow-readers pipelined long-body endless-body long-head long-line many-segments no-http no-targets \
	guesses one-report known-rests; do
	attack "$way"
done
attack known-reads "$(wc -c <traces/web-1/trace.0.bin)"
attack busy $server
"$make_trace" many zstd many.bin.zst 2000000
for way in posts post-many-files post-cut two-posts post-silent; do
	attack "$way"
done
attack post-leaves many.bin.zst
say "nothing of what was sent stays behind"
until [ -z "$(find /tmp -maxdepth 1 -name "dial9-serve.$server.*")" ]; do kill -0 $server || exit 1; done
find /proc/$server/fd -lname '*dial9-upload*' | wc -l

say "segments that expand, cheat and lie are told"
python3 - "$url" <<'EOF'
import json, sys, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
while True:
    answer = json.load(opener.open(sys.argv[1] + 'api/map'))
    if not answer['reading']:
        break
    time.sleep(0.1)
for segment in answer['segments']:
    bad = segment['state'] == 'failed' or segment['damaged'] or segment['truncated']
    print(segment['name'], 'told' if bad else 'fine')
print(json.load(opener.open(sys.argv[1] + 'api/callbacks'))['coverage']['segments'], 'segments')
json.load(opener.open(sys.argv[1] + 'api/stacks?process=x&from_ms=nan&to_ms=1e999'))
EOF

say "a folder that has become a link since, and a segment that has become a pipe"
ask() {
	python3 "$top_srcdir/tests/cli/ask_http.py" "$url" "$@"
}
mv traces/bad kept
ln -s ../kept traces/bad
ask --path /TOKEN/segment/bad%2Ftrace.3.bin
rm traces/bad
mv kept traces/bad
rm traces/bad/trace.3.bin
mkfifo traces/bad/trace.3.bin
ask --path /TOKEN/segment/bad%2Ftrace.3.bin
ask --path /TOKEN/segment/web-1%2Ftrace.8.bin
ask --path /TOKEN/api/report --save report

say "what other sites may read: nothing says that they may"
ask --header "Origin: http://evil.example" --show Access-Control-Allow-Origin
ask --method OPTIONS --header "Origin: http://evil.example" --header "Access-Control-Request-Method: GET" --show Access-Control-Allow-Origin
ask --show Cross-Origin-Resource-Policy
ask --show Cross-Origin-Opener-Policy
for site in cross-site same-site nonsense; do
	ask --path /TOKEN/api/map --header "Sec-Fetch-Site: $site"
done

attack cut traces/web-1/trace.0.bin "$(wc -c <traces/web-1/trace.0.bin)"

kill -INT $server
wait $server
echo "[INT: exit status $?]"

say "other addresses: digits only, with a warning"
run serve --listen evil.example traces
: >address
"$dial9" serve --listen 127.0.0.2 traces >address &
server=$!
until [ -s address ]; do kill -0 $server || exit 1; done
sed -E 's|:[0-9]+/[0-9a-f]{32}/$|:PORT/TOKEN/|' address
python3 "$top_srcdir/tests/cli/ask_http.py" "$(cat address)" --path /TOKEN/segment/x
python3 "$top_srcdir/tests/cli/ask_http.py" "$(cat address)" --header "Host: evil.example:80"
kill -TERM $server
wait $server
echo "[TERM: exit status $?]"

finish 's/x/x/'
