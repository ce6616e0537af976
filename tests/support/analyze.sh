#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Static analysis, which must have nothing to say:
#
#	tests/support/analyze.sh BUILD [TOOL...]
#
# cppcheck    of core/ and adapters/; seconds
# tidy-quick  clang-tidy on core/ and adapters/, without the analyzer that follows paths; CI runs these two
# tidy        with it on all C code; a quarter of an hour
# gcc         gcc -fanalyzer on core/ and adapters/; minutes
#
# BUILD is a configured tree, for config.h [all tools].  A file that was found clean there is looked at
# again when it, what it includes, the tool or its checks have changed.  What is no mistake stands in
# .clang-tidy and cppcheck.supp, with its reason, or beside the code.
set -eu

# look TOOL FILE
look() {
	case $1 in
	tidy) clang-tidy --quiet "$2" -- $flags ;;
	tidy-quick) clang-tidy --quiet --checks='-clang-analyzer-*' "$2" -- $flags ;;
	gcc)
		# gcc 12 loses what moves into a container; leaks are LeakSanitizer's.
		gcc -fanalyzer -O1 -Werror -Wno-analyzer-malloc-leak -Wno-analyzer-too-complex \
			$flags -c -o /dev/null "$2"
		;;
	esac
}

# For xargs, with $flags, $version and $clean: look at files unless what they come to was clean before.
if [ "${1:-}" = --look ]; then
	tool=$2 all_flags=$flags status=0
	shift 2
	for file; do
		flags=$all_flags
		case $file in tests/*) flags="$flags -Itests -DD9__WITH_TEST_POINTS" ;; esac
		out=$(gcc -E -C $flags "$file" 2>&1 >"$clean/$$") || {
			# Some tests are of libraries that may be missing here.
			echo "left out: $(echo "$out" | grep -m 1 ' error: ')"
			case $file in tests/*) ;; *) status=1 ;; esac
			continue
		}
		mark=$clean/$tool.$( (echo "$version$flags" && cat .clang-tidy "$clean/$$") | sha256sum |
			cut -c 1-40)
		if [ -e "$mark" ]; then
			touch "$mark"
		elif out=$(look "$tool" "$file" 2>&1); then
			: >"$mark"
		else
			printf '%s\n' "$out"
			status=1
		fi
	done
	rm -f "$clean/$$"
	exit $status
fi

if [ ! -f "${1:-}/config.h" ]; then
	sed -n '3,14s/^# \{0,1\}//p' "$0"
	exit 2
fi
build=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../.."
clean=$build/analyzed
mkdir -p "$clean"
# Folders that makefiles define.
printf '#define %s "/"\n' BINDIR PKGLIBDIR PKGLIBEXECDIR PKGDATADIR >"$clean/folders.h"
include="-DHAVE_CONFIG_H -I$build -I$build/core/include -Icore/include -Iadapters/include -Icore -Iadapters"
flags="-std=gnu11 -pthread -include $clean/folders.h $include
	$(sed -n 's/^\(CUNIT\|GLIB\|JSON\|LIBDW\|LIBEVENT\|LIBIBERTY\|LIBPQ\|LTTNG\|SOUP\)_CFLAGS = //p' \
		"$build/Makefile" | tr '\n' ' ')"
version="$(gcc --version) $(clang-tidy --version 2>/dev/null || true)"
export flags version clean
status=0

# Words are meant: lists of files and flags.
[ $# -gt 0 ] || set -- cppcheck tidy gcc
for tool; do
	echo "== $tool"
	case $tool in
	cppcheck)
		cppcheck -j"$(nproc)" --quiet --error-exitcode=1 --enable=warning,performance,portability \
			--std=c11 --library=posix --suppressions-list=tests/support/cppcheck.supp \
			--suppress=missingInclude --suppress=unmatchedSuppression \
			--template='{file}:{line}: {id}: {message}' \
			--include="$clean/folders.h" -D'__asm__(...)=' $include \
			$(find core adapters -name '*.c' | sort) || status=1
		continue
		;;
	tidy) folders='core adapters examples tests' ;;
	tidy-quick | gcc) folders='core adapters' ;;
	*)
		echo "analyze.sh: no such tool: $tool" >&2
		exit 2
		;;
	esac
	: >"$clean/began"
	find $folders -name '*.c' | sort |
		xargs -P"$(nproc)" -n4 sh tests/support/analyze.sh --look "$tool" || status=1
	find "$clean" -name "$tool.*" ! -newer "$clean/began" -exec rm {} +
done
exit $status
