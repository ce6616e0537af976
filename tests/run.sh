#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install what is missing, build, run all tests, print the totals on the last line:
#
#	tests/run.sh [--build DIR] [--quick]
#
# --build DIR   where to build [a temporary folder, removed afterwards]
# --quick       with gcc what is not slow (D9_SLOW in tests/tests.am), and the tests in C with ASan and UBSan: no browser,
#               no real programs, no TSan, no clang, no valgrind, no distcheck
set -eu

top=$(cd "$(dirname "$0")/.." && pwd)
build='' quick=no
while [ $# -gt 0 ]; do
	case $1 in
	--build) build=$2 && shift ;;
	--quick) quick=yes ;;
	*)
		sed -n '3,9s/^# \{0,1\}//p' "$0"
		exit 2
		;;
	esac
	shift
done
"$top/tests/support/install_packages.sh" build test $([ $quick = yes ] || echo stores)

keep=yes
[ -n "$build" ] || {
	build=$(mktemp -d) keep=no
}
mkdir -p "$build"
# Some tests run programs as another user, who is to find our libraries.
chmod a+rx "$build"
build=$(cd "$build" && pwd)
results=$build/results
: >"$results"
# distcheck leaves its tree read-only when it fails
builds=
trap '[ -z "$builds" ] || kill $builds 2>/dev/null || true; [ $keep = yes ] || { chmod -R u+w "$build"; rm -rf "$build"; }' EXIT

# Without them the tests of other versions of libevent skip.
"$top/tests/support/fetch_sources.sh" "$build/sources"
export D9_TEST_SOURCES="$build/sources"
# Without them the viewer is not tested in a browser.
"$top/tests/support/install_npm.sh" "$build/npm"
export D9_TEST_NPM="$build/npm"

# cpu FILE: seconds of CPU of all that this shell has waited for; FILE is none of another shell's.
cpu() {
	times >"$1"
	cpu=$(awk -F '[ms ]+' 'NR == 2 { printf "%d", 60 * ($1 + $3) + $2 + $4 }' "$1")
	rm "$1"
}

# attempt NAME COMMAND...: whether it succeeds; the end of its output only if it fails.
attempt() {
	name=$1 began=$(date +%s)
	shift
	log=$build/stage.$(echo "$name" | tr -c '[:alnum:]\n' -).log
	cpu "$log.times"
	before=$cpu
	if (cd "$build" && "$@") >"$log" 2>&1; then
		cpu "$log.times"
		echo "== $name: $(($(date +%s) - began)) s, $((cpu - before)) s of CPU"
	else
		echo "== $name: FAILED"
		tail -n 100 "$log"
		return 1
	fi
}

# stage NAME COMMAND...: one result.
stage() {
	if attempt "$@"; then
		echo "PASS: $1" >>"$results"
	else
		echo "FAIL: $1" >>"$results"
		return 1
	fi
}

# stage_with PROGRAM NAME COMMAND...: skipped where this release of Debian has no such program.
stage_with() {
	if command -v "$1" >/dev/null; then
		shift
		stage "$@"
	else
		echo "skipped: $2: $1 is not installed"
		echo "SKIP: $2" >>"$results"
	fi
}

# What was compiled on this machine before is not compiled again, wherever that tree was: with a relative way to the sources, and
# ccache's names for the compilers, all its commands are the same.  Of what is compiled the first time, which may be all, it
# looks at the files that the compiler has read, and preprocesses none before.  Tests have the compilers themselves.
ln -sfn "$top" "$build/source"
compilers() {
	[ ! -d /usr/lib/ccache ] || export PATH="/usr/lib/ccache:$PATH" CCACHE_NOHASHDIR=yes CCACHE_DEPEND=yes
}

# configure_and_build DIR "TARGET..." ARG...
configure_and_build() {
	compilers
	mkdir -p "$1"
	cd "$1"
	targets=$2
	shift 2
	# With Debian's sh configure and libtool take a third less.
	CONFIG_SHELL=/bin/sh ../source/configure "$@"
	for target in $targets; do
		make -j"$(nproc)" "$target" TESTS= LIBTOOL="/bin/sh $top/tests/support/quick_libtool.sh ./libtool"
	done
}

# results_of DIR RESULT...: names of the tests there that ended so.  distcheck's, in a tree below it, are its own.
results_of() {
	dir=$1
	shift
	find "$dir" -name 'dial9-*' -prune -o -name '*.trs' -print | sort | while read -r trs; do
		for result; do
			if grep -qx ":test-result: $result" "$trs"; then
				name=${trs%.trs}
				echo "${name#"$dir/"}"
			fi
		done
	done
}

# check TREE TARGET [AS]: `make TARGET` there, results under the name AS; each test's own counts.
# What fails is run again by itself when all else is done: here it shares two cores with others.
check() {
	tree=$1 where=${3:-$1} began=$(date +%s)
	find "$build/$tree" -name 'dial9-*' -prune -o -name '*.trs' -exec rm {} +
	cpu "$build/check.$where.times"
	before=$cpu
	# Most tests wait most of the time.
	make -C "$build/$tree" -k -j$((2 * $(nproc))) "$2" abs_top_srcdir="$top" >"$build/check.$where.log" 2>&1 || true
	cpu "$build/check.$where.times"
	echo "== make $2 in $tree: $(($(date +%s) - began)) s, $((cpu - before)) s of CPU that somebody waited for"
	grep -qE '^# TOTAL:' "$build/check.$where.log" || {
		tail -n 60 "$build/check.$where.log"
		echo "FAIL: $where: make $2 did not finish" >>"$results"
		return
	}
	echo "longest: $(cd "$build/$tree" && find . -name 'dial9-*' -prune -o -name '*.log' -exec grep -H '^took ' {} + |
		sed 's|^\./||; s|\.log:took | |' | sort -k2nr | head -n 4 | tr '\n' ';')"
	results_of "$build/$tree" PASS | sed "s|^|PASS: $where: |" >>"$results"
	results_of "$build/$tree" SKIP | while read -r name; do
		echo "skipped: $where: $name: $(grep -v '^SKIP\|^took' "$build/$tree/$name.log" | tail -n 1)"
		echo "SKIP: $where: $name" >>"$results"
	done
	for name in $(results_of "$build/$tree" FAIL XPASS ERROR); do
		printf -- '---- %s: %s\n' "$where" "$name"
		tail -n 60 "$build/$tree/$name.log"
		echo "$tree $where $name" >>"$build/failed"
	done
}

# again LANE: each of the tests on standard input, "TREE AS NAME", by itself.
again() {
	while read -r tree where name; do
		valgrind=
		[ "$where" != valgrind ] || valgrind=VALGRIND=valgrind
		if make -C "$build/$tree" check-TESTS TESTS="$name" abs_top_srcdir="$top" TEST_SUITE_LOG="again.$1.log" $valgrind >"$build/again.$1.log" 2>&1; then
			echo "---- $where: $name passed when it ran alone"
			echo "PASS: $where: $name" >>"$results"
		else
			printf -- '---- %s: %s, alone\n' "$where" "$name"
			tail -n 60 "$build/$tree/$name.log"
			echo "FAIL: $where: $name" >>"$results"
		fi
	done
}

# What failed, with a core for itself: those of real programs, which wait most of the time, beside the others.
try_again() {
	grep ' tests/real/' "$build/failed" | again real >"$build/again.real" &
	grep -v ' tests/real/' "$build/failed" | again others >"$build/again.others" || true
	wait $! || true
	cat "$build/again.real" "$build/again.others"
}

# shell_scripts: the ones that git knows, or all of a tarball.  Left out: variables from the
# makefile, word splitting and quotes that are meant, `-nt` and `ulimit -n`, which every shell of ours knows.
shell_scripts() {
	(git -C "$top" ls-files '*.sh' .ci/run 2>/dev/null || find "$top" -name '*.sh') |
		sed "s|^\([^/]\)|$top/\1|" | xargs shellcheck -x -P "$top" \
		-e SC1091,SC2154,SC2086,SC2046,SC2044,SC2043,SC3013,SC3045,SC2016
}

# The tarball in a read-only tree, built by clang where that is there, installed, and tests there of what is built from it;
# the rest ran above, and that the files of all tests are in the tarball is checked when it is packed.
distcheck() {
	compilers
	tests='' compiler=
	! command -v clang >/dev/null || compiler='CC=clang CXX=clang++ --enable-werror'
	for name in usage completion info report record export; do
		tests="$tests tests/cli/test_$name.sh"
	done
	programs=$(cd "$top" && cat $tests tests/cli/harness.sh | grep -oE 'top_builddir"?/(tests/cli|examples)/[a-z_]+' |
		sed 's|.*top_builddir"*/||' | sort -u | tr '\n' ' ')
	env -u D9_TEST_SOURCES VERBOSE=1 make -C "$build/gcc" -j"$(nproc)" distcheck \
		DISTCHECK_CONFIGURE_FLAGS="$compiler CFLAGS=-O0 CXXFLAGS=-O0" check_PROGRAMS="$programs" TESTS="$tests"
}

# With less optimization gcc warns of what cannot be, so that these are no errors here.
quick_build='CFLAGS=-g1 -O1'
build_asan() {
	stage "build with ASan and UBSan" configure_and_build asan "$1" --enable-sanitizer=address,undefined "$quick_build"
}

# lend_program DIR: tests there start the program of the gcc build, which has been tested itself.
lend_program() {
	ln -sf "$build/gcc/core/dial9" "$build/$1/core/dial9"
}

# What is built while tests run, most of which wait most of the time; each stage's status goes to
# DIR.done.
builds() {
	status=0
	build_asan "all check" || status=1
	echo $status >"$build/asan.done"
	status=0
	# It only reads traces: it has no threads to look at.
	stage "build with TSan" configure_and_build tsan thread-tests --enable-sanitizer=thread "$quick_build" &&
		lend_program tsan || status=1
	echo $status >"$build/tsan.done"
	# configure uses one core, distcheck the other.
	stage "configure's answers" "$top/tests/install/check_configure.sh" "$top" &
	answers=$!
	# Its tests share two cores with others, as those of check() do.
	if attempt "distcheck" distcheck; then
		echo "PASS: distcheck" >>"$results"
	else
		: >"$build/distcheck.failed"
	fi
	wait $answers || true
	stage_with shellcheck "shellcheck" shell_scripts || true
	stage_with cppcheck "cppcheck" "$top/tests/support/analyze.sh" "$build/gcc" cppcheck || true
	stage_with clang-tidy "clang-tidy" "$top/tests/support/analyze.sh" "$build/gcc" tidy-quick || true
}

# built DIR: wait for it; whether it can be tested.
built() {
	until [ -s "$build/$1.done" ]; do
		kill -0 "$builds" 2>/dev/null || return 1
		sleep 0.2
	done
	[ "$(cat "$build/$1.done")" = 0 ]
}

if [ ! -x "$top/configure" ] || [ "$top/configure.ac" -nt "$top/configure" ]; then
	stage "autoreconf" autoreconf -fi "$top"
fi
: >"$build/failed"
export ASAN_OPTIONS=detect_leaks=1:abort_on_error=0 UBSAN_OPTIONS=halt_on_error=1
rm -f "$build"/*.done "$build/distcheck.failed"
if ! stage "build with gcc" configure_and_build gcc "all check benches" --enable-werror; then
	:
elif [ $quick = yes ]; then
	check gcc check-quick
	if build_asan unit-tests; then
		lend_program asan
		check asan check-unit
	fi
else
	(
		renice -n 10 -p "$(exec sh -c 'echo $PPID')" >/dev/null
		builds
	) &
	builds=$!
	check gcc check
	! built asan || check asan check
	! built tsan || check tsan check-threads
	if command -v valgrind >/dev/null; then
		check gcc check-valgrind valgrind
	else
		echo "skipped: valgrind is not installed"
		echo "SKIP: valgrind" >>"$results"
	fi
fi
try_again
[ -z "$builds" ] || wait $builds || true
builds=
if [ -e "$build/distcheck.failed" ]; then
	! stage "distcheck" distcheck || echo "---- distcheck passed when it ran alone"
fi

passed=$(grep -c '^PASS' "$results" || true)
failed=$(grep -cE '^(FAIL|XPASS|ERROR)' "$results" || true)
skipped=$(grep -cE '^(SKIP|XFAIL)' "$results" || true)
grep -E '^(FAIL|XPASS|ERROR)' "$results" || true
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
