#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install what is missing, build, run all tests, print the totals on the last line:
#
#	tests/run.sh [--build DIR] [--quick]
#
# --build DIR   where to build [a temporary folder, removed afterwards]
# --quick       `make check` only: no sanitizers, no distcheck
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
build= quick=no
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=$2 && shift ;;
	--quick) quick=yes ;;
	*)
		sed -n '2,8s/^# \{0,1\}//p' "$0"
		exit 2
		;;
	esac
	shift
done
"$top/tests/support/install_packages.sh" build test

keep=yes
[ -n "$build" ] || {
	build=$(mktemp -d) keep=no
}
mkdir -p "$build"
results=$build/results
: >"$results"
trap '[ $keep = yes ] || rm -rf "$build"' EXIT

# stage NAME COMMAND...: one line in the results; its output only if it failed.
stage() {
	name=$1
	shift
	printf '%s\n' "== $name"
	if (cd "$build" && "$@") >"$build/stage.log" 2>&1; then
		echo "PASS: $name" >>"$results"
	else
		tail -n 200 "$build/stage.log"
		echo "FAIL: $name" >>"$results"
		return 1
	fi
}

# check DIR: `make check` there; every test's own result counts.
check() {
	printf '%s\n' "== make check in ${1##*/}"
	make -C "$1" -k -j"$(nproc)" check >"$1/check.log" 2>&1 || true
	grep -E '^(PASS|FAIL|SKIP|XFAIL|XPASS|ERROR): ' "$1/check.log" |
		sed "s|: |: ${1##*/}: |" >>"$results" || true
	if ! grep -qE '^# TOTAL:' "$1/check.log"; then
		tail -n 60 "$1/check.log"
		echo "FAIL: ${1##*/}: make check did not finish" >>"$results"
	fi
	for log in $(grep -lE '^(FAIL|ERROR) ' $(find "$1" -name '*.trs' | sed 's/trs$/log/') \
		/dev/null 2>/dev/null); do
		printf '%s\n' "---- $log" && tail -n 60 "$log"
	done
	for trs in $(grep -lE '^:test-result: SKIP' $(find "$1" -name '*.trs') /dev/null); do
		printf 'skipped: %s: %s\n' "$(basename "${trs%.trs}")" \
			"$(grep -v '^$' "${trs%.trs}.log" | tail -n 2 | head -n 1)"
	done
}

configure_and_build() {
	mkdir -p "$build/$1"
	cd "$build/$1"
	shift
	"$top/configure" --enable-werror "$@"
	make -j"$(nproc)"
}

[ -x "$top/configure" ] || stage "autoreconf" autoreconf -fi "$top"
stage "build with gcc" configure_and_build gcc &&
	check "$build/gcc"
if [ $quick = no ]; then
	stage "build with clang" configure_and_build clang CC=clang CXX=clang++ || true
	stage "distcheck" make -C "$build/gcc" distcheck \
		AM_DISTCHECK_CONFIGURE_FLAGS='--enable-werror --with-libevent' TESTS= || true
fi

passed=$(grep -c '^PASS' "$results" || true)
failed=$(grep -cE '^(FAIL|XPASS|ERROR)' "$results" || true)
skipped=$(grep -cE '^(SKIP|XFAIL)' "$results" || true)
grep -E '^(FAIL|XPASS|ERROR)' "$results" || true
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
