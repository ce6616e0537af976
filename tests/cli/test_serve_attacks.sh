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
EOF
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

attack known traces/web-1/trace.0.bin
for way in silent slow-writers slow-readers pipelined long-body endless-body long-head long-line many-segments no-http; do
	attack "$way"
done

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
