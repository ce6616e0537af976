#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `dial9 serve` gives to whom: the page, segments and the report to who has the address, and nothing
# to other hosts, without the token, from elsewhere than the directory, or behind a link.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

"$dial9" serve --help >help
"$dial9" serve /nonexistent 2>&1 | grep -q 'built without libevent' && skip "built without libevent"

# serve TRACE: $url; ends with end_server.
serve() {
	: >address
	"$dial9" serve "$@" >address &
	server=$!
	trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
	until url=$(cat address) && [ -n "$url" ]; do
		kill -0 $server || return
	done
}
end_server() {
	kill "-$1" $server
	wait $server
	echo "[$1: exit status $?]"
}
ask() {
	python3 "$top_srcdir/tests/cli/ask_http.py" "$url" "$@"
}

mkdir -p traces/web-1 elsewhere
"$make_trace" process plain traces/web-1/trace.0.bin web-1 30
"$make_trace" process zstd elsewhere/trace.1.bin.zst other-2 3
echo "no segment" >traces/web-1/secret.txt
ln -s ../../elsewhere/trace.1.bin.zst traces/web-1/trace.1.bin.zst
ln -s ../elsewhere traces/linked

say "one line, the address"
serve traces
wc -l <address
sed -E 's|:[0-9]+/[0-9a-f]{32}/$|:PORT/TOKEN/|' address

say "the page, with its policy"
ask --show Content-Security-Policy
ask --show X-Content-Type-Options
ask --show Referrer-Policy
ask --path /TOKEN/viewer/app.js --show Content-Type
ask --path /TOKEN/toolkit/decode.js --show Content-Type
ask --path /TOKEN/doc/ANALYSIS.md --show Content-Type
ask --method HEAD

say "HEAD: what GET says of itself, and no body: what is asked next on the connection has its own answer"
python3 - "$url" <<'EOF'
import socket, sys, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
connection = socket.create_connection((url.hostname, url.port), 30)
lines = connection.makefile('rb')
def ask(method, path):
    connection.sendall(f'{method} {path} HTTP/1.1\r\nHost: {url.netloc}\r\n\r\n'.encode())
    status, headers = lines.readline().split()[1].decode(), {}
    for line in iter(lines.readline, b'\r\n'):
        name, value = line.decode().split(':', 1)
        headers[name.lower()] = value.strip()
    return status, int(headers['content-length'])
for path in ['', 'map', 'viewer/app.js', 'api/segments', 'api/report', 'api/page', 'segment/web-1%2Ftrace.0.bin', 'segment/none', 'none', '../']:
    head, get = ask('HEAD', url.path + path), ask('GET', url.path + path)
    lines.read(get[1])
    print(path or 'the page', head[0], 'as GET' if head == get else get)
print('without the token', ask('HEAD', '/')[0], ask('HEAD', '/')[0])
EOF

say "segments: those in it, as they are; not what links lead to, nor other files"
ask --path /TOKEN/api/segments --save listing
sed 's/"modified_ms": [0-9]*/"modified_ms": N/' listing
ask --path /TOKEN/segment/web-1%2Ftrace.0.bin --save got
cmp got traces/web-1/trace.0.bin
ask --path /TOKEN/segment/web-1/trace.0.bin --save got
cmp got traces/web-1/trace.0.bin
for name in web-1/trace.1.bin.zst linked/trace.1.bin.zst web-1/secret.txt ../elsewhere/trace.1.bin.zst \
	..%2felsewhere%2ftrace.1.bin.zst %2e%2e/elsewhere/trace.1.bin.zst /etc/passwd web-1 web-1%2Ftrace.0.bin%00 ''; do
	printf '%s: ' "$name"
	ask --path "/TOKEN/segment/$name"
done
for path in viewer/../../core/main.c viewer/ toolkit/../viewer/app.js api/ api/segments/x; do
	printf '%s: ' "$path"
	ask --path "/TOKEN/$path"
done

say "the viewer as one file without a trace, as text"
ask --path /TOKEN/api/page --show Content-Type --save page
grep -o 'id="embedded[a-z-]*">[^<]*' page | head -n 2

say "a segment that has become a link since"
mv traces/web-1/trace.0.bin kept
ln -s ../../kept traces/web-1/trace.0.bin
ask --path /TOKEN/segment/web-1%2Ftrace.0.bin
rm traces/web-1/trace.0.bin
mv kept traces/web-1/trace.0.bin

say "the report, of what is listed and nothing else"
ask --path /TOKEN/api/report --save report.json
python3 -c '
import json
report = json.load(open("report.json"))
print(report["findings"][0]["check"], [f["path"].split("/")[-1] for f in report["trace"]["files"]])'

say "the report on a file of the reader's own: what dial9 report says of it, by its name"
"$make_trace" many plain trace.4.bin 60000
python3 "$top_srcdir/tests/cli/send_http.py" "$url" sent.json trace.4.bin
"$dial9" report --json --symbols -- trace.4.bin >told.json
cmp sent.json told.json
wc -c <trace.4.bin | awk '{ print ($1 > 300000) ? "in pieces" : "at once" }'
cp traces/web-1/trace.0.bin second.bin
python3 "$top_srcdir/tests/cli/send_http.py" "$url" sent.json trace.4.bin second.bin
"$dial9" report --json --symbols -- trace.4.bin second.bin >told.json
cmp sent.json told.json

say "who may not"
ask --path /
ask --path /00000000000000000000000000000000/
ask --path /TOKEN
ask --header "Host: evil.example"
ask --header "Host: 127.0.0.1"
ask --header "Host: 127.0.0.1:1"
ask --header "Host: localhost:$(printf %s "$url" | sed 's|.*:\([0-9]*\)/.*|\1|')" --path /TOKEN/viewer/app.js
ask --header "Sec-Fetch-Site: cross-site"
ask --header "Sec-Fetch-Site: same-site" --path /TOKEN/api/segments
ask --path http://evil.example/TOKEN/
ask --method POST
ask --method PUT
ask --method DELETE --path /TOKEN/segment/web-1%2Ftrace.0.bin
ask --header "X: $(head -c 100000 /dev/zero | tr '\0' x)"
end_server INT

say "the dump of a manifest: the segments that it lists and no others; its report tells those that are not there"
mkdir dump
cp traces/web-1/trace.0.bin dump/trace.3.bin
cp traces/web-1/trace.0.bin dump/trace.9.bin
ln -s ../traces/web-1/trace.0.bin dump/trace.5.bin
echo '{"dump_id": "01KB5B22APD3KS0BM3YXWVAB10", "trigger": "stall", "trigger_time": "2026-11-28T15:19:10.000000000Z", "state": "closed",
	"complete": true, "segments": ["trace.3.bin", "trace.4.bin", "trace.5.bin"], "fired": []}' >dump/dump.A.json
sed 's|trace.3|../traces/trace.3|' dump/dump.A.json >dump/dump.B.json
serve dump/dump.A.json
ask --path /TOKEN/api/segments --save listing
grep '"name"' listing
for name in trace.3.bin trace.9.bin trace.5.bin dump.A.json; do
	printf '%s: ' "$name"
	ask --path "/TOKEN/segment/$name"
done
ask --path /TOKEN/api/report --save report.json
python3 -c '
import json
report = json.load(open("report.json"))
print(report["findings"][0]["message"], [e["text"].split("/")[-1] for e in report["findings"][0]["evidence"]])'
end_server INT
run serve dump/dump.B.json
run serve --live dump/dump.A.json

say "a call as long as numbers go: it is counted, and its parts are its length"
"$make_trace" endless plain endless.bin
"$dial9" serve --summary endless.bin >endless.json
python3 -c '
import json
summary = json.load(open("endless.json"))
call = summary["callbacks"][0]
print(call["calls"], call["durations"], sum(summary["bins"][1::2]) == call["total_ns"] == call["longest_ns"])'
serve endless.bin
until ask --path /TOKEN/api/callbacks --save callbacks.json && ! grep -q '"waiting": *1' callbacks.json; do :; done >/dev/null
python3 -c '
import json
call = json.load(open("callbacks.json"))["callbacks"][0]
print(call["p50_ns"] > 2**62, call["p50_ns"] <= call["longest_ns"])'
end_server INT

say "recorded by itself, it is still the one that signals end"
if [ "$SANITIZER" = no ]; then
	serve --self-trace own traces
	ask --path /TOKEN/api/segments
	end_server INT
	"$dial9" info own | grep -q PollStartEvent || echo "nothing is recorded"
else # its runtime cannot be preloaded
	printf '200\n[INT: exit status 0]\n'
fi

say "--open: the browser gets a file that leads to the address, which nobody else can read; no command line has the secret"
mkdir -p browser run home
chmod 700 run home
cat >browser/xdg-open <<'EOF'
#!/bin/sh
{
	echo "$# word, $(stat -c '%a %h' "$1")"
	grep -oE 'url=http://[^"]*' "$1"
	printf '%s\n' "$1" | sed -E 's|.*/(run\|home)/dial9-[0-9a-f]{16}\.html|in \1|'
} >opened.new
cat /proc/$$/environ /proc/$$/cmdline /proc/$PPID/environ /proc/$PPID/cmdline >environment
mv opened.new opened
EOF
chmod +x browser/xdg-open
# open_it SIGNAL: what the browser got; and that nothing stays behind when the server ends.
open_it() {
	rm -f opened
	serve --open traces
	until [ -e opened ]; do kill -0 $server || return; done
	sed -E 's|:[0-9]+/[0-9a-f]{32}/$|:PORT/TOKEN/|' opened
	grep -c "$(printf %s "$url" | sed 's|.*/\([0-9a-f]*\)/$|\1|')" environment
	end_server "$1" 2>/dev/null
	while [ -n "$(find run home -name '*html*')" ]; do :; done
}
old_path=$PATH
PATH=$work/browser:$PATH HOME=$work/home XDG_RUNTIME_DIR=$work/run
export PATH HOME XDG_RUNTIME_DIR
open_it INT
open_it KILL
# A directory that others can write to is no place for it.
chmod 777 run
open_it TERM

say "--open where no xdg-open is: the address is there"
mkdir none
ln -s "$(command -v cat)" none
# shellcheck disable=SC2123 # the search path is meant
PATH=$work/none
serve --open traces 2>trouble
PATH=$old_path
until [ -s trouble ]; do kill -0 $server || exit 1; done
cat trouble
ask
end_server INT

say "one segment, which is none"
echo "this is a text" >text.bin
serve text.bin
ask --path /TOKEN/segment/text.bin
ask --path /TOKEN/api/report
end_server TERM

say "more clients than descriptors: the others wait, nothing spins, and all goes on when they leave"
: >address
python3 -c '
import os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))
os.execv(sys.argv[1], sys.argv[1:])' "$dial9" serve traces >address &
server=$!
until url=$(cat address) && [ -n "$url" ]; do kill -0 $server || exit 1; done
python3 -c '
import socket, sys, time, urllib.parse
url = urllib.parse.urlsplit(sys.argv[1])
ticks = lambda: sum(map(int, open(f"/proc/{sys.argv[2]}/stat").read().rsplit(")", 1)[1].split()[11:13]))
clients = [socket.create_connection((url.hostname, url.port)) for _ in range(60)]
time.sleep(0.3)
before = ticks()
time.sleep(1)
print("spins" if ticks() - before > 5 else "rests")' "$url" $server
ask --path /TOKEN/segment/text
end_server INT

say "a port that is taken, and what is no trace"
serve traces
run serve --port "$(printf %s "$url" | sed 's|.*:\([0-9]*\)/.*|\1|')" traces
end_server INT
mkdir empty
run serve empty
run serve missing

finish 's/on port [0-9]*/on port PORT/; s/--port [0-9]* traces/--port PORT traces/'
