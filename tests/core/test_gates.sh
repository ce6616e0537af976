#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each gate can fail: a small tree that breaks one rule at a time, and the line that tells of it.
set -eu

command -v git >/dev/null || {
	echo "git is not installed"
	exit 77
}
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
gates=$top_srcdir/tests/core

# fresh: a tree in which all is well.
fresh() {
	rm -rf "$tree"
	mkdir -p "$tree/core/base" "$tree/core/ring" "$tree/core/man" "$tree/core/doc" "$tree/core/findings" "$tree/adapters" \
		"$tree/tests/core" "$tree/examples" "$tree/pkgconfig"
	cp "$top_srcdir/.clang-format" "$tree"
	for name in LICENSE Makefile.am README.md configure.ac adapters/x examples/x pkgconfig/x core/man/dial9-report.1 \
		tests/core/limits.list; do
		: >"$tree/$name"
	done
	printf 'traced core/base:\ntraced core/ring: core/base\noutside core/findings: core/base\n' >"$tree/tests/core/rooms.list"
	printf '.BR spin\n' >"$tree/core/man/dial9-report.1"
	printf '`spin`\n' >"$tree/core/doc/REPORT-JSON.md"
	printf '	{ "spin", D9__ABOUT_LOOP },\n' >"$tree/core/findings/checks.c"
	printf 'int d9__low(void);\n' >"$tree/core/base/low.h"
	printf '#include "base/low.h"\nint d9__low(void)\n{\n\treturn 0;\n}\n' >"$tree/core/base/low.c"
	printf 'int d9__high(void);\n' >"$tree/core/ring/high.h"
	printf '#include "base/low.h"\n#include "ring/high.h"\nint d9__high(void)\n{\n\treturn d9__low();\n}\n' >"$tree/core/ring/high.c"
	git -C "$tree" init -q
}

compile() {
	for file in base/low ring/high; do
		$CC -I"$tree/core" -c "$tree/core/$file.c" -o "$tree/core/$file.o"
	done
}

# gate SCRIPT: its lines, and whether it passed.
gate() {
	git -C "$tree" add -A
	case $1 in check_circles.sh) compile ;; esac
	said=$(top_srcdir=$tree top_builddir=$tree sh "$gates/$1" 2>&1) && passed=yes || passed=no
}

passes() {
	gate "$1"
	[ "$passed" = yes ] || {
		printf '%s does not pass:\n%s\n' "$1" "$said"
		exit 1
	}
}

# fails SCRIPT WORDS: it does, and says so.
fails() {
	gate "$1"
	[ "$passed" = no ] || {
		echo "$1 passes: $2"
		exit 1
	}
	case $said in *"$2"*) ;; *)
		printf '%s does not say "%s":\n%s\n' "$1" "$2" "$said"
		exit 1
		;;
	esac
}

fresh
for script in check_tree.sh check_limits.sh check_quiet.sh check_circles.sh; do
	passes $script
done

printf '#include "ring/high.h"\n' >>"$tree/core/base/low.c"
fails check_tree.sh "core/base/low.c includes ring/high.h"
printf 'except low.c high.h\n' >>"$tree/tests/core/rooms.list"
passes check_tree.sh
fresh
printf 'door core/base/door.h core/ring\n' >>"$tree/tests/core/rooms.list"
fails check_tree.sh "core/ring/high.c includes base/low.h and not core/base/door.h"
git -C "$tree" mv core/base/low.h core/base/door.h
sed 's/low[.]h/door.h/' -i "$tree/core/base/low.c" "$tree/core/ring/high.c"
passes check_tree.sh
passes check_circles.sh
mkdir "$tree/core/new"
: >"$tree/core/new/new.c"
fails check_tree.sh "core/new is no room"
fresh
: >"$tree/other"
fails check_tree.sh "top level"

fresh
printf '/* %0120d */\n' 0 >>"$tree/core/base/low.h"
fails check_limits.sh "core/base/low.h has 1 lines that are too long, and may have 0"
printf 'columns 2 core/base/low.h\n' >"$tree/tests/core/limits.list"
fails check_limits.sh "columns core/base/low.h fell to 1"
printf 'columns 1 core/base/low.h\n' >"$tree/tests/core/limits.list"
passes check_limits.sh
printf '/* What is low. */\n' >>"$tree/core/base/low.h"
fails check_limits.sh "core/base/low.h has 1 riddles in comments"
fresh
printf 'struct d9__x {\n\tint low;\n};\n' | tee -a "$tree/core/base/low.h" >>"$tree/core/ring/high.h"
fails check_limits.sh "two meanings"

fresh
printf 'void f(void)\n{\n\tabort();\n}\n' >>"$tree/core/base/low.c"
fails check_quiet.sh "end the recorded program"

fresh
printf 'int d9__high(void);\nint d9__lower(void)\n{\n\treturn d9__high();\n}\n' >>"$tree/core/base/low.c"
fails check_circles.sh "2 files call each other in a circle"
printf 'circle 2 core/base/low\n' >>"$tree/tests/core/rooms.list"
passes check_circles.sh
fresh
printf 'circle 2 core/ring/high\n' >>"$tree/tests/core/rooms.list"
fails check_circles.sh "the circle of core/ring/high is gone"
fresh
printf 'int d9__low(void);\nint d9__high(void);\n' >"$tree/core/base/low.h"
: >"$tree/core/ring/high.h"
fails check_circles.sh "core/base/low.h declares what other files define"
printf 'stray 2 core/base/low\n' >>"$tree/tests/core/rooms.list"
fails check_circles.sh "its line in rooms.list says 2"

fresh
commit() {
	git -C "$tree" add -A
	git -C "$tree" -c user.name=x -c user.email=x@localhost commit -q --allow-empty -m "$1"
}
commit "begin"
D9_SUBJECTS_SINCE=$(git -C "$tree" rev-parse HEAD)
export D9_SUBJECTS_SINCE
commit "base, ring: add low and high"
passes check_subjects.sh
commit "base: tell what is low"
fails check_subjects.sh "base: tell what is low"
commit "Added things"
fails check_subjects.sh "Added things"
