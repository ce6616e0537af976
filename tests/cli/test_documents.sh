#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The commands in README.md, the guides and the manual pages do what they say: each block of them runs, on the demo
# trace.  Programs that they take for an example are one of ours here, which runs a loop for a second.
set -eu

# Blocks about all programs of the machine run where the test can have one for itself.
if [ -z "${D9_OWN_SHM:-}" ] && [ "$(id -u)" = 0 ] &&
	unshare -m -p -f --mount-proc mount -t tmpfs none /dev/shm 2>/dev/null; then
	# shellcheck source=tests/cli/own_shm.sh
	. "$top_srcdir/tests/cli/own_shm.sh"
fi
"$top_srcdir/tests/support/has_node.sh" || {
	echo "there is no node, or one older than 18"
	exit 77
}
[ -x "$top_builddir/examples/.libs/scenario_long_callback" ] || {
	echo "there is no program to record: no libevent"
	exit 77
}
dial9=$(cd "$top_builddir/core" && pwd)/dial9
examples=$(cd "$top_builddir/examples" && pwd)
demo=$top_srcdir/core/demo
"$dial9" query --schema >/dev/null 2>&1 || {
	echo "dial9 was built without SQLite"
	exit 77
}
for program in jq less pidof pkg-config zstdcat; do
	command -v $program >/dev/null || {
		echo "$program is not installed"
		exit 77
	}
done
work=$(mktemp -d)
living=''
# shellcheck disable=SC2154 # set by what is trapped
trap '[ -z "$living" ] || kill $living; rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
mkdir "$work/bin"

# stand_in NAME LINE...: a program of that name.
stand_in() {
	file=$work/bin/$1
	shift
	printf '%s\n' '#!/bin/sh' "$@" >"$file"
	chmod +x "$file"
}
# What goes on until it is interrupted, is as soon as it has said something.
# shellcheck disable=SC2016 # what the stand-ins see
stand_in dial9 "real=$dial9" 'case $1 in' 'serve) ;;' 'top) exec "$real" "$@" --once ;;' '*) exec "$real" "$@" ;;' 'esac' \
	'rm -f said' '"$real" "$@" >said &' 'until [ -s said ]; do kill -0 $! || exit; sleep 0.05; done' 'cat said' 'kill $! && wait $!'
# The programs themselves: libtool's scripts would be recorded, too.
LD_LIBRARY_PATH=${dial9%/*}/.libs:${examples%/*}/adapters/.libs
export LD_LIBRARY_PATH
fresh=$work/fresh
mkdir -p "$fresh/traces" "$fresh/dial9-traces/abcd-4711" "$fresh/dial9-traces/efgh-4712"
for program in bin/memcached bin/frobd fresh/server; do
	cp "$examples/.libs/scenario_long_callback" "$work/$program"
done
# shellcheck disable=SC2016
stand_in sudo 'exec "$@"'
stand_in xdg-open :

DIAL9_TRACE_DIR=$work/living "$examples/http_service" 0 >"$work/listens" &
living=$!
stand_in pidof "echo $living"
until [ -s "$work/listens" ]; do
	kill -0 $living
	sleep 0.05
done

cp "$demo/web/trace.0.bin.zst" "$fresh/traces/trace.0.bin.zst"
echo '{"dump_id": "01KB5B22APD3KS0BM3YXWVAB10", "trigger": "stall", "trigger_time": "2026-11-28T15:19:10.000000000Z", "state": "closed",
	"complete": true, "segments": ["trace.0.bin.zst"], "fired": []}' >"$fresh/traces/dump.01KB5B22APD3KS0BM3YXWVAB10.json"
cp "$demo/web/trace.0.bin.zst" "$fresh/dial9-traces/abcd-4711/trace.0.bin.zst"
cp "$demo/growth/trace.0.bin.zst" "$fresh/dial9-traces/efgh-4712/trace.0.bin.zst"
cp "$demo/web/trace.0.bin.zst" "$fresh/trace.0.bin.zst"
(cd "$fresh" && "$dial9" agents toolkit toolkit >/dev/null)
D9_WORK=$work D9_PROGRAMS=${dial9%/*} D9_STAND_INS=$work/bin D9_LIVING=$living D9_PORT=$(sed 's/.* //' "$work/listens") \
	node --test "$top_srcdir/tests/cli/test_documents.mjs"
