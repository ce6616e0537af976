#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The preload library in programs with and without libevent: nothing they do is changed, nothing
# is left behind where there was nothing to record, and children are followed only if wanted.
set -eu
: "${top_srcdir:?}" "${top_builddir:?}"

preload=$top_builddir/adapters/.libs/libdial9-preload.so
tests=$top_builddir/tests/adapters
dial9=$top_builddir/core/dial9
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
DIAL9_ENABLED=true DIAL9_TRACE_DIR=$dir/traces
export DIAL9_ENABLED DIAL9_TRACE_DIR

fail() {
	printf '%s\n' "$1"
	exit 1
}

# same COMMAND...: output and status are the same with us, and nothing was recorded.
same() {
	"$@" >plain.out 2>plain.err && plain=0 || plain=$?
	LD_PRELOAD=$preload "$@" >ours.out 2>ours.err && ours=0 || ours=$?
	[ "$plain" = "$ours" ] || fail "$*: status $plain without us, $ours with us"
	cmp plain.out ours.out || fail "$*: other output"
	cmp plain.err ours.err || fail "$*: other errors"
	[ ! -e traces ] || fail "$*: left a trace"
}

# polls COMMAND...: how many PollStarts its trace has.
polls() {
	rm -rf traces
	LD_PRELOAD=$preload "$@" >ours.out 2>ours.err && ours=0 || ours=$?
	[ -e traces ] || {
		echo none
		return
	}
	"$dial9" info traces | awk '$1 == "PollStartEvent" { n += $2 } END { print n + 0 }'
}

# ---- without libevent ----

same true
same false
same sh -c 'echo out; echo err >&2; exit 7'
same sh -c 'kill -TERM $$'
same ls -lR "$top_srcdir/core/hook"
same cat /dev/null
same sh -c 'ls /nowhere'

# One thread, the descriptors it had, also in what it starts.
LD_PRELOAD=$preload ls /proc/self/task >threads
[ "$(wc -l <threads)" = 1 ] || fail "a thread in a program without libevent"
LD_PRELOAD=$preload sh -c 'ls /proc/self/fd' >ours.fd
sh -c 'ls /proc/self/fd' >plain.fd
cmp plain.fd ours.fd || fail "descriptors in a program without libevent"

# ---- with libevent ----

libevent=$(ldd "$tests/preload_linked" | awk '$1 ~ /^libevent/ { print $3; exit }')
[ -n "$libevent" ] || fail "preload_linked is not linked with libevent"

# Linked, as most programs are.
"$tests/preload_linked" >plain.out && plain=0 || plain=$?
[ "$(polls "$tests/preload_linked")" = 5 ] || fail "linked: not 5 polls"
cmp plain.out ours.out || fail "linked: other output"

# Loaded late, for itself alone: the exported constructors notice it.
got=$(polls "$tests/preload_program" "$libevent")
[ "$got" = 5 ] || fail "loaded late: $got polls"
grep -qx "callbacks 5" ours.out || fail "loaded late: other output"

# Beside a module with names of libevent of its own, which must get its own.
got=$(polls "$tests/preload_program" "$libevent" "$tests/.libs/preload_copy.so")
[ "$got" = 5 ] || fail "beside a copy: $got polls"
printf 'copy 42\ncallbacks 5\ncopy 42\n' | cmp - ours.out || fail "beside a copy: other output"

# Made in a library's constructor, which runs before ours.
for early in "$tests/.libs/preload_early.so" "$tests/.libs/preload_early_ev.so"; do
	[ -e "$early" ] || continue # without libev
	rm -rf traces
	LD_PRELOAD="$preload $early" "$tests/loader" "$early" >ours.out || fail "early: status $?"
	[ "$(cat ours.out)" = "count_early 50" ] || fail "early: other output"
	got=$("$dial9" info traces | awk '$1 == "PollStartEvent" { print $2 }')
	[ "$got" = 50 ] || fail "early: $got polls"
done

# ---- children ----

rm -rf traces
LD_PRELOAD=$preload sh -c "'$tests/preload_linked' >/dev/null; :"
[ -e traces ] || fail "a child was not followed"
rm -rf traces
DIAL9_FOLLOW=0 LD_PRELOAD=$preload sh -c "'$tests/preload_linked' >/dev/null; :"
[ ! -e traces ] || fail "a child was followed against DIAL9_FOLLOW=0"

# Our entry and our variables are gone before main(), others' stay.
for list in "$preload" "libm.so.6:$preload" "$preload libm.so.6" "libm.so.6 $preload:libc.so.6"; do
	LD_PRELOAD=$list DIAL9_FOLLOW=no sh -c 'echo "$LD_PRELOAD"; env' >ours.out
	if grep -q "preload\.so" ours.out || grep -q "^DIAL9_" ours.out; then
		fail "left in the environment of a child: $list"
	fi
	wanted=$(printf '%s\n' "$list" | sed "s|[: ]*${preload}[: ]*| |; s|^ ||; s| \$||" | tr ' ' :)
	[ "$(head -n 1 ours.out | tr ' ' :)" = "$wanted" ] || fail "others' entries of $list"
done

# The program itself is recorded where its variables said.
[ "$(DIAL9_FOLLOW=off polls "$tests/preload_linked")" = 5 ] || fail "unfollowed: not 5 polls"

# ---- another user's powers ----

if [ "$(id -u)" = 0 ] && cp "$tests/preload_linked" owned && chown 65534 owned &&
	chmod 4755 owned && chmod 755 .; then
	rm -rf traces
	LD_PRELOAD=$preload ./owned >ours.out || true
	cmp plain.out ours.out || fail "with another user's powers: other output"
	[ ! -e traces ] || fail "with another user's powers: recorded"
fi
