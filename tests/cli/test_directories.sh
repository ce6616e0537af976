#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Directories that other users prepared: nothing is written in them, nor behind their links.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

[ "$(id -u)" = 0 ] || skip "not root, who alone can make what belongs to another user"
build_timer
chmod 755 "$work"
mkdir -m 700 tmp precious
TMPDIR=$work/tmp
export TMPDIR

words='s/dial9-traces-0/dial9-traces-UID/g; s/[a-z]\{4\}-[0-9]\{1,\}/ID/g; s/recorded [0-9]* events/recorded N events/'

# modes DIR: it and what is in it, without the names of processes and segments.
modes() {
	find "$1" ! -name .peers -printf '%y %m %U %p\n' | sed "$words; s|/ID/.*|/ID/...|" |
		LC_ALL=C sort -u
}

say "directories on the way to the trace are nobody else's business"
umask 0
"$dial9" record -q -o a/b/c -- ./prog 100 20 0
umask 022
modes a

say "a link that another user left in a shared directory is not followed, nor does it keep the program from running"
mkdir -m 1777 shared
cd shared || exit 99
ln -s "$work/precious" dial9-traces
chown -h 65534 dial9-traces
"$dial9" record -- ../prog 100 20 7
echo "[exit status $?]"
cd .. || exit 99
modes precious
modes tmp
"$dial9" record -o shared/dial9-traces -- ./prog 100 20 7
echo "[exit status $?]"

say "nor is another user's directory taken"
rm -r shared/dial9-traces tmp/*
mkdir shared/dial9-traces
chown 65534 shared/dial9-traces
cd shared || exit 99
"$dial9" record -- ../prog 100 20 0
cd .. || exit 99
modes shared

say "nor does a file of that name keep the program from running"
rm -r shared/dial9-traces tmp/*
: >shared/dial9-traces
cd shared || exit 99
"$dial9" record -- ../prog 100 20 7
echo "[exit status $?]"
cd .. || exit 99

say "a ring on disk is made in no directory of another user's"
mkdir -m 777 theirs
chown 65534 theirs
DIAL9_RING=disk DIAL9_TRACE_DIR="$work/theirs" DIAL9_ENABLED=true \
	LD_PRELOAD="$top_builddir/adapters/.libs/libdial9-preload.so" ./prog 100 20 0 &
wait
modes theirs
rm -r /dev/shm/dial9-0/????-$!

finish "$words"
