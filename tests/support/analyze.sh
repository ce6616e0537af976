#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Static analysis of what is in core/ and adapters/, which must have nothing to say:
#
#	tests/support/analyze.sh BUILD [cppcheck|clang-tidy|gcc]...
#
# BUILD is a configured tree, for config.h.  CI runs cppcheck, which is quick; all three take minutes.
# What is no mistake stands in .clang-tidy and cppcheck.supp, with its reason, or beside the code.
set -eu

if [ ! -f "${1:-}/config.h" ]; then
	sed -n '3,8s/^# \{0,1\}//p' "$0"
	exit 2
fi
build=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
sources=$(find core adapters -name '*.c' | sort)
# Folders that makefiles define.
folders=$(mktemp)
trap 'rm -f "$folders"' EXIT
printf '#define %s "/"\n' BINDIR PKGLIBDIR >"$folders"
include="-DHAVE_CONFIG_H -I$build -I$build/core/include -Icore/include -Iadapters/include -Icore -Iadapters"
flags="-std=gnu11 -pthread -include $folders $include
	$(sed -n 's/^\(LIBEVENT\|GLIB\|JSON\|LIBDW\|LIBIBERTY\)_CFLAGS = //p' "$build/Makefile" | tr '\n' ' ')"
status=0

# Words are meant: lists of files and flags.
[ $# -gt 0 ] || set -- cppcheck clang-tidy gcc
for tool; do
	echo "== $tool"
	case $tool in
	cppcheck)
		cppcheck -j"$(nproc)" --quiet --error-exitcode=1 --enable=warning,performance,portability \
			--std=c11 --library=posix --suppressions-list=tests/support/cppcheck.supp \
			--suppress=missingInclude --suppress=unmatchedSuppression \
			--template='{file}:{line}: {id}: {message}' $include $sources || status=1
		;;
	clang-tidy)
		echo "$sources" | xargs -P"$(nproc)" -n8 sh -c 'clang-tidy --quiet "$@" -- '"$flags" sh ||
			status=1
		;;
	gcc)
		# gcc 12 loses what moves into a container; leaks are LeakSanitizer's.
		echo "$sources" | xargs -P"$(nproc)" -n1 gcc -fanalyzer -O1 -Werror \
			-Wno-analyzer-malloc-leak -Wno-analyzer-too-complex $flags \
			-c -o /dev/null || status=1
		;;
	*)
		echo "analyze.sh: no such tool: $tool" >&2
		exit 2
		;;
	esac
done
exit $status
