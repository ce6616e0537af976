#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# A machine that is well, and one that is not.
# shellcheck source=tests/cli/harness.sh
. "$top_srcdir/tests/cli/harness.sh"

program=$top_builddir/adapters/dial9-selftest-libevent
[ -x "$program" ] || skip "no self-test was built"
TMPDIR=$work
DIAL9_TRACE_DIR=$work/traces
export TMPDIR DIAL9_TRACE_DIR

# checks NAME...: those lines, and the advice below them.
checks() {
	for name; do
		sed -n "/^[A-Z]* *$name /{p; :more; n; /^  /!q; p; b more}" found
	done
}

# The self-test of libevent; other adapters may be built or not.
selftest() {
	sed -n "/^[A-Z]* *self-test *libevent[: ]/{p; :more; n; /^  /!q; p; b more}" found
}

say "recorded, read back, counted"
"$dial9" doctor >found
echo "[exit status $?]"
sed 's/^\([A-Z]*\).*/\1/' found | grep -c FAIL
selftest
# A long path stands on lines of its own.
checks "preload library" | tr -s ' \n' ' ' | sed "s|$top_builddir|BUILD|; s| \$||"
echo
checks libevent | grep -o "poll=full" | head -n 1
grep -o "^[A-Z]* *\(shared memory\|trace directory\|descriptors\|file size\|clock\|scheduler\|left-over rings\) " found |
	sed 's/^[A-Z]* *//'
awk 'length > 79 && !/\//' found
ls

say "the user's variables do not reach it"
DIAL9_ENABLED=false DIAL9_WRITER=null "$dial9" doctor >found
selftest

say "variables that are not known, or have values that make no sense"
DIAL9_MODE=fligth DIAL9_ROTATE_SECS=5 DIAL9_RING_MB=lots "$dial9" doctor >found
echo "[exit status $?]"
checks variables
DIAL9_MODE=flight DIAL9_FOLLOW=0 "$dial9" doctor >found
checks variables
(
	unset DIAL9_TRACE_DIR DIAL9_PRESSURE
	"$dial9" doctor >found
	checks variables
)

say "JSON"
"$dial9" doctor --json >json
echo "[exit status $?]"
grep -o '^{"ok":true,"checks":\[{"name":"preload library","result":"ok"' json
grep -o '"name":"self-test","result":"ok","text":"libevent: [^}]*}' json

say "no preload library"
DIAL9_PRELOAD=/no/such/library.so "$dial9" doctor >found
echo "[exit status $?]"
# Where it would be installed is this build's affair, and may need a line of its own.
checks "preload library" | tr -s ' \n' ' ' | sed "s|$pkglibdir|PKGLIBDIR|; s| \$||"
echo

say "a library in its place that records nothing"
cp "$($CC -print-file-name=libm.so.6)" nothing.so
cp "$program" dial9-selftest-libevent
DIAL9_PRELOAD=$work/nothing.so "$dial9" doctor >found
echo "[exit status $?]"
selftest | sed 's/libevent [0-9.]*[^ ]* ran/libevent VERSION ran/' | tr -s ' \n' ' '
echo

say "a self-test that dies, and one that cannot be loaded"
printf '#!/bin/sh\nkill -SEGV $$\n' >dial9-selftest-libevent
DIAL9_PRELOAD=$work/nothing.so "$dial9" doctor >found
selftest
printf '#!/bin/sh\nexit 127\n' >dial9-selftest-libevent
DIAL9_PRELOAD=$work/nothing.so "$dial9" doctor >found
checks libevent
rm dial9-selftest-libevent nothing.so

say "directories and limits"
touch file
DIAL9_TRACE_DIR=$work/file/x "$dial9" doctor >found
echo "[exit status $?]"
checks "trace directory" | tr -s " \n" " "
echo
(
	# shellcheck disable=SC3045
	ulimit -S -n 40
	ulimit -f 1000
	"$dial9" doctor >found
	checks descriptors "file size" | sed "s/most [0-9.]* [KM]iB/most N MiB/"
)

finish ''
