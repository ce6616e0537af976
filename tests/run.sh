#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install what is missing, build, run all tests, print the totals on the last line:
#
#	tests/run.sh [--build DIR] [--quick]
#
# --build DIR   where to build [a temporary folder, removed afterwards]
# --quick       `make check` with gcc only: no sanitizers, no clang, no distcheck
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
build='' quick=no
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=$2 && shift ;;
	--quick) quick=yes ;;
	*)
		sed -n '3,8s/^# \{0,1\}//p' "$0"
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
build=$(cd "$build" && pwd)
results=$build/results
: >"$results"
# distcheck leaves its tree read-only when it fails
trap '[ $keep = yes ] || { chmod -R u+w "$build"; rm -rf "$build"; }' EXIT

# Without them the tests of other versions of libevent skip.
"$top/tests/support/fetch_sources.sh" "$build/sources"
export DIAL9_TEST_SOURCES="$build/sources"

# stage NAME COMMAND...: one result; the end of its output only if it failed.
stage() {
	name=$1
	shift
	printf '== %s\n' "$name"
	if (cd "$build" && "$@") >"$build/stage.log" 2>&1; then
		echo "PASS: $name" >>"$results"
	else
		tail -n 100 "$build/stage.log"
		echo "FAIL: $name" >>"$results"
		return 1
	fi
}

# configure_and_build DIR ARG...
configure_and_build() {
	mkdir -p "$1"
	cd "$1"
	shift
	"$top/configure" --enable-werror "$@"
	make -j"$(nproc)"
}

# results_of DIR RESULT...: names of the tests there that ended so.
results_of() {
	dir=$1
	shift
	find "$dir" -name '*.trs' | sort | while read -r trs; do
		for result; do
			if grep -qx ":test-result: $result" "$trs"; then
				name=${trs%.trs}
				echo "${name#"$dir/"}"
			fi
		done
	done
}

# check DIR ARG...: `make check` there; each test's own result counts.  What fails is run again by
# itself: tests of real programs under load share two cores with the others here.
check() {
	where=$1
	shift
	printf '== make check in %s\n' "$where"
	make -C "$build/$where" -k -j"$(nproc)" check "$@" >"$build/$where/check.log" 2>&1 || true
	grep -qE '^# TOTAL:' "$build/$where/check.log" || {
		tail -n 60 "$build/$where/check.log"
		echo "FAIL: $where: make check did not finish" >>"$results"
		return
	}
	results_of "$build/$where" PASS | sed "s|^|PASS: $where: |" >>"$results"
	results_of "$build/$where" SKIP | while read -r name; do
		echo "skipped: $where: $name: $(grep -v '^SKIP' "$build/$where/$name.log" | tail -n 1)"
		echo "SKIP: $where: $name" >>"$results"
	done
	for name in $(results_of "$build/$where" FAIL XPASS ERROR); do
		printf -- '---- %s: %s\n' "$where" "$name"
		tail -n 60 "$build/$where/$name.log"
		if make -C "$build/$where" check TESTS="$name" >"$build/$where/again.log" 2>&1; then
			echo "---- $where: $name passed when it ran alone"
			echo "PASS: $where: $name" >>"$results"
		else
			tail -n 60 "$build/$where/$name.log"
			echo "FAIL: $where: $name" >>"$results"
		fi
	done
}

# shell_scripts: the ones that git knows, or all of a tarball.  Left out: variables from the
# makefile, word splitting and quotes that are meant, `-nt`, which every shell of ours knows.
shell_scripts() {
	(git -C "$top" ls-files '*.sh' .ci/run 2>/dev/null || find "$top" -name '*.sh') |
		sed "s|^\([^/]\)|$top/\1|" | xargs shellcheck -x -P "$top" \
		-e SC1091,SC2154,SC2086,SC2046,SC2044,SC2043,SC3013,SC2016
}

if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ]; then
	stage "autoreconf" autoreconf -fi "$top"
fi
stage "build with gcc" configure_and_build gcc && check gcc
if [ $quick = no ]; then
	export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=halt_on_error=1
	stage "build with ASan and UBSan" configure_and_build asan \
		--enable-sanitizer=address,undefined && check asan
	stage "build with TSan" configure_and_build tsan --enable-sanitizer=thread &&
		check tsan TESTS="$(cd "$build/tsan" && make -s print-thread-tests)"
	stage "build with clang" configure_and_build clang CC=clang CXX=clang++ || true
	stage "configure's answers" "$top/tests/install/check_configure.sh" "$top" || true
	stage "shellcheck" shell_scripts || true
	# The real programs and other versions of libevent were run above.
	stage "distcheck" env -u DIAL9_TEST_SOURCES D9_LEAVE_OUT=real make -C "$build/gcc" distcheck || true
fi

passed=$(grep -c '^PASS' "$results" || true)
failed=$(grep -cE '^(FAIL|XPASS|ERROR)' "$results" || true)
skipped=$(grep -cE '^(SKIP|XFAIL)' "$results" || true)
grep -E '^(FAIL|XPASS|ERROR)' "$results" || true
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
