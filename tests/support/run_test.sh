#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run one test of `make check`.  One that hangs is one that fails.  Programs run under $VALGRIND, if
# that is set; it looks at values and addresses, for leaks are AddressSanitizer's.  It follows a test that
# starts itself again; but not into the system's programs and ours, and not to those that are to be
# killed, of which there are hundreds: what they leave is read under it.

# Who asks for what this tree has no use for is told; `make check` does not ask.
case " ${D9_NOT_HERE:-} " in
*" tests/${1##*tests/} "*)
	case ${SANITIZER:-no} in
	no) echo "not for this tree, which has no shared libraries or no loop library (lists in Makefile.am)" ;;
	*) echo "not for a tree with a sanitizer (lists in Makefile.am)" ;;
	esac
	exit 77
	;;
esac
unset D9_NOT_HERE
case $1 in
*tests/viewer/*.mjs) set -- "$top_srcdir/tests/viewer/check_viewer.sh" "$1" ;;
esac
# Debian's programs before those of version managers, whose python3 is a script that takes half a second of CPU to find the other.
PATH=/usr/bin:/bin:$PATH
start=$(date +%s)
# valgrind runs one thread at a time: without --fair-sched those that compute leave the recorder's none.
case $1,${VALGRIND:-} in
*.sh,* | *,) timeout -k 10 900 "$@" ;;
*)
	timeout -k 10 900 "$top_builddir/libtool" --silent --mode=execute "$VALGRIND" --quiet \
		--error-exitcode=1 --leak-check=no --vgdb=no --fair-sched=yes --trace-children=yes \
		--trace-children-skip='/bin/*,/sbin/*,/usr/bin/*,/usr/sbin/*,*/dial9' \
		--trace-children-skip-by-arg=victim "$@"
	;;
esac
status=$?
used=$(mktemp)
times >"$used" # of this shell, and of all that it waited for
echo "took $(($(date +%s) - start)) s, $(awk 'END { split($0, t, /[ms ]+/); printf "%d", 60 * (t[1] + t[3]) + t[2] + t[4] }' "$used") s of CPU"
rm -f "$used"
exit $status
