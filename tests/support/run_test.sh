#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run one test of `make check`.  One that hangs is one that fails.  Programs run under $VALGRIND, if
# that is set; it looks at values and addresses, for leaks are AddressSanitizer's.  It follows a test that
# starts itself again; but not into the system's programs and ours, and not to those that are to be
# killed, of which there are hundreds: what they leave is read under it.

# What is hooked is in shared libraries, and what tests load is; statically there is another way.
case $1 in
*adapters/check_libev_static.sh | *adapters/check_libevent_static.sh) ;;
*core/hook/test_got | *core/hook/test_got_scope | *core/hook/test_images | *core/hook/test_stubs | \
*core/hook/test_trigger | *core/hook/check_link_modes.sh | *tests/adapters/* | *tests/real/* | \
*cli/test_doctor.sh | *cli/test_doctor_command.sh)
	if [ ! -e "$top_builddir/core/.libs/libdial9.so" ]; then
		echo "no shared libraries were built (--disable-shared)"
		exit 77
	fi
	;;
esac
# What is JavaScript, or one page of it, has nothing that a sanitizer sees.
case ${SANITIZER:-no},$1 in
no,*) ;;
*tests/viewer/*.mjs | *tests/toolkit/check_flags.sh | *tests/toolkit/check_scripts.sh | *tests/toolkit/check_profiles.sh | *tests/cli/test_report_html.sh)
	echo "what it tests is not compiled: it ran without a sanitizer"
	exit 77
	;;
esac
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
