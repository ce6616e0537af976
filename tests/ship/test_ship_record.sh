#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dial9 record --ship: what CMD records is in the store while it runs and once it has ended, what could not be sent stays and
# is named, and CMD is started, runs and ends as without.
set -eu
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# shellcheck source=tests/ship/store.sh
. "$top_srcdir/tests/ship/store.sh"
# shellcheck source=tests/ship/timer.sh
. "$top_srcdir/tests/ship/timer.sh"
start_store
AWS_ENDPOINT_URL_S3=$address
export AWS_ENDPOINT_URL_S3

# record OPTIONS... -- CMD...: what it says is in the file `said`, its status in $status.
record() {
	status=0
	"$dial9" record "$@" >said 2>&1 9>&- || status=$?
}

# ---- what is recorded is stored ----
record --ship=s3://bucket/p -o all -- ./timer 200 3
equal "status" $status 3
says 'dial9: recorded; 1 segment (' ') stored in s3://bucket/p; nothing is left in all'
equal "lines" "$(wc -l <said | tr -d ' ')" 1
equal "objects" "$(objects '*/service=timer/*-0.bin.zst')" 1
equal "segments left" "$(segments all)" 0
rm -r "$work/s3/bucket/p"

# The variables of the original name the place; CMD is killed, and what it had not written is recovered and stored.
status=0
DIAL9_S3_BUCKET=bucket DIAL9_S3_PREFIX=q "$dial9" record --ship -q -o killed -- ./timer 0 >said 2>&1 9>&- &
recorder=$!
await has_active killed
kill -KILL "$(sed -n 's/.*-//p' <<-END
	$(ls killed)
END
)"
wait $recorder || status=$?
equal "status" $status 137
equal "lines" "$(grep -c dial9 said || true)" 0
[ "$(objects '*/q/version=1/*')" -ge 1 ] || fail "nothing is stored"
equal "segments left" "$(segments killed)" 0

# While CMD runs, sealed segments go.
"$dial9" record --ship=s3://bucket/r --ship-options '--every 100ms --raw' --rotate 1s -o running -- ./timer 0 >said 2>&1 9>&- &
recorder=$!
stored_some() {
	[ "$(objects '*/r/version=1/*')" -ge 1 ]
}
await stored_some
kill -TERM $recorder
status=0
wait $recorder || status=$?
equal "status" $status 143
says ' stored in s3://bucket/r; nothing is left in running'

# ---- a segment that was not compressed for want of a CPU is, here and in the store ----
# A process that becomes CMD compresses nothing when that has ended.
DIAL9_PRESSURE=yes "$dial9" record -q --exec -o raw -- ./timer 1000
cp -R raw kept
size_of() {
	find "$@" \( -name '*-0.bin.zst' -o -name 'trace.0.bin.zst' \) -exec cat {} + | wc -c
}
size=$(size_of raw)
ship raw --once --dry-run
equal "bytes after a dry run" "$(size_of raw)" "$size"
AWS_SECRET_ACCESS_KEY=wrong
ship raw --once --raw
AWS_SECRET_ACCESS_KEY=secret
[ "$(size_of raw)" -lt "$size" ] || fail "it is not compressed while it waits"
ship raw --once --raw
equal "status" $status 0
[ "$(size_of "$stored/p")" -lt "$size" ] || fail "it is stored uncompressed"
"$dial9" events kept >expected
"$dial9" events "$(find "$stored/p" -name "*-0.bin.zst")" >got
cmp expected got || fail "its events are others"
rm -r "$stored/p"
# A file that stays is not changed.
ship kept/*/trace.0.bin.zst --once --raw
equal "bytes of a file that stays" "$(size_of kept)" "$size"
[ "$(size_of "$stored/p")" -lt "$size" ] || fail "a file is stored uncompressed"
rm -r "$stored/p"

# ---- what is not stored stays, and is named ----
AWS_SECRET_ACCESS_KEY=wrong
record -q --ship=s3://bucket/p --ship-options --raw -o left -- ./timer 200
AWS_SECRET_ACCESS_KEY=secret
equal "status" $status 0
says 'recorded ' 'SignatureDoesNotMatch' '; left: 1 segment in left; send them: dial9 ship --once --to s3://bucket/p left'
equal "segments left" "$(segments left)" 1
ship left --once
equal "segments left" "$(segments left)" 0

# A store that never answers: the deadline holds.
faults '[{ "kind": "swallow", "times": 0 }]'
record --ship=s3://bucket/p --ship-deadline 300ms -o late -- ./timer 200
equal "status" $status 0
says '; left: 1 segment in late'
faults '[]'

# A command that cannot be started has no shipper, and its status is its own.
record --ship=s3://bucket/p -o none -- ./absent
equal "status" $status 127

# ---- bad usage is one line, and CMD does not run ----
refuses() {
	line=$1
	shift
	record "$@" -- touch ran
	equal "status of $*" $status 2
	says "$line"
	equal "lines of $*" "$(wc -l <said | tr -d ' ')" 1
	[ ! -e ran ] || fail "CMD ran with $*"
}
refuses 'where to? --ship=s3://BUCKET/PREFIX' --ship
refuses "an address is s3://BUCKET" --ship=http://bucket
refuses "an address is s3://BUCKET" --ship=s3://b
refuses "a prefix has parts" --ship=s3://bucket//p
refuses "unknown option '--frob'" --ship=s3://bucket --ship-options --frob
refuses "quote" --ship=s3://bucket --ship-options "'x"
refuses "--ship-options without --ship" --ship-options --raw
refuses "there is no --ship" --ship=s3://bucket --exec
refuses "takes away what --report is to see" --ship=s3://bucket --report
refuses "takes away what --on-dump is to see" --ship=s3://bucket --on-dump true
refuses "--ship-deadline wants a time" --ship=s3://bucket --ship-deadline soon

# ---- CMD has what it has without ----
cat >show <<'END'
#!/bin/sh
# What a program can see of how it was started; $1: where to write it.
# Not in a pipeline, whose pipes the shell has for a moment.
find /proc/$$/fd -type l -printf '%f %l\n' >"$1.fds"
{
	tr '\0' '\n' </proc/self/environ | grep -v '^DIAL9_TRACE_DIR=\|^_=' | sort
	grep -v 'socket\|/show$\|\.fds$' "$1.fds" | sort
	grep '^Sig' /proc/$$/status | grep -v '^SigQ'
	ps -o nice= -p $$
	ps -o pgid= -p $$ | grep -q "^ *$(ps -o pgid= -p $PPID | tr -d ' ')$" && echo "the group of its parent"
} >"$1"
END
chmod +x show
for how in without with; do
	option=
	[ $how = without ] || option=--ship=s3://bucket/p
	# shellcheck disable=SC2086
	"$dial9" record $option -o $how.traces -- ./show seen <show 7<timer.c >said 2>&1 9>&- || true
	mv seen $how
done
grep -q 'group of its parent' with || fail "CMD is in another process group"
grep -q '^7 .*timer.c$' with || fail "a descriptor is missing"
diff without with || fail "CMD sees that it is shipped"
stop_store
