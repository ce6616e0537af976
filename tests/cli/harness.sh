# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by the tests of the program.  What they print becomes a transcript, which must equal
# TEST.expected; UPDATE_EXPECTED=1 writes that file instead.
set -u

dial9=$top_builddir/core/dial9
# shellcheck disable=SC2034 # used by those that source this
make_trace=$top_builddir/tests/cli/make_trace
test_name=$(basename "$0" .sh)
expected=$top_srcdir/tests/cli/$test_name.expected
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 99' HUP INT TERM
unset DIAL9_PRELOAD DIAL9_TRACE_DIR LD_PRELOAD 2>/dev/null
LC_ALL=C
export LC_ALL
cd "$work" || exit 99
exec 3>&1 >"$work/.transcript" 2>&1

# run ARGUMENTS...: dial9, as a line of the transcript, its output, its status unless that is 0.
run() {
	printf '$ dial9 %s\n' "$*"
	"$dial9" "$@"
	status=$?
	[ $status = 0 ] || echo "[exit status $status]"
}

# say TEXT...: a heading.
say() {
	printf '\n# %s\n' "$*"
}

# skip WHY: not a failure, but said.
skip() {
	echo "$1" >&3
	exit 77
}

# For tests that record programs as they are.
need_preload() {
	[ "$SANITIZER" = no ] || skip "a sanitizer's runtime cannot be preloaded"
	[ -e "$top_builddir/adapters/.libs/libdial9-preload.so" ] || skip "no preload library was built"
}

# finish SED-SCRIPT: compare, after replacing what differs from machine to machine.
finish() {
	exec >&3 2>&3
	# Root is told one reason more.
	sed -e "s|$work|WORK|g" -e 's/, or it became another user, .*//' -e 's/; if it went on in the background, .*//' -e "$1" "$work/.transcript" >"$work/.result"
	if [ -n "${UPDATE_EXPECTED:-}" ]; then
		cp "$work/.result" "$expected"
	fi
	diff -u "$expected" "$work/.result" || exit 1
	exit 0
}
