#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Programs that compile libev into themselves by <dial9/ev-embed.h>, with libev's source from
# $D9_TEST_SOURCES: as many polls as the program counted, and nothing that libev called was missed.
set -u
library=libev
# shellcheck source=tests/adapters/counted.sh
. "$top_srcdir/tests/adapters/counted.sh"

for tarball in "${D9_TEST_SOURCES:-/nonexistent}"/libev_*.orig.tar.*; do
	[ -f "$tarball" ] ||
		skip "no sources: run tests/support/fetch_sources.sh DIR and set D9_TEST_SOURCES=DIR"
	mkdir "$work/libev" && tar -xf "$tarball" -C "$work/libev" --strip-components=1 || exit 99
done

tests=$top_srcdir/tests/adapters
flags="-O1 -foptimize-sibling-calls -pthread -fexceptions -Wall -Wextra -Werror -I$top_builddir -I$tests"
flags="$flags -I$top_builddir/core/include -I$top_srcdir/core/include -I$top_srcdir/adapters/include"
# libev's own files are full of what compilers warn of.
flags="$flags -isystem $work/libev -Wno-strict-aliasing -Wno-unused-function -Wno-error=unused-value"
flags="$flags -Wno-unused-variable"
[ "$SANITIZER" = no ] || flags="$flags -fsanitize=$SANITIZER"

# compile NAME COMPILER FLAG... FILE...
compile() {
	name=$1
	shift
	# The lists are lists of words.
	# shellcheck disable=SC2086
	"$@" $flags -o "$work/$name" -L"$top_builddir/core/.libs" -ldial9 -ldl -lm >"$work/said" 2>&1 || {
		cat "$work/said"
		fail "$name does not compile"
	}
	! grep -q 'dial9/ev-embed[a-z-]*\.h:[0-9]*:[0-9]*: warning' "$work/said" || {
		grep -A3 'dial9/ev-embed' "$work/said"
		fail "$name: the header is warned of"
	}
}

full="--wakes --has mode=embedded --has poll=full --has park=on --has lateness=on"
scenario=compiling
mkdir "$work/objects"
$CC -std=gnu11 -I"$top_builddir" -c "$tests/counters.c" -O1 -o "$work/objects/counters.o" || exit 99
embedded="$tests/libev_embedded.c $work/objects/counters.o"
for how in "" -DEV_MULTIPLICITY=0 -DEV_API_STATIC "-DOWN_CALLBACK -DEV_EMBED_ENABLE=0" \
	"-DEV_FEATURES=0x74 -DD9__EV_WATCHERS=4u" "-DEV_MULTIPLICITY=0 -DEV_MINPRI=0 -DEV_MAXPRI=0"; do
	# shellcheck disable=SC2086
	compile embedded $CC -std=gnu11 $how $embedded
	record "embedded, $how" "" "$full" "$work/embedded"
done
# shellcheck disable=SC2086
compile thrown $CXX -std=gnu++11 -xc++ "$tests/libev_embedded.c" -xnone "$work/objects/counters.o"
record "embedded in C++, with exceptions" "" "$full" "$work/thrown"
scenario="not attached"
"$work/embedded" --alone || fail "it does not run"

# All kinds, and what the shared library's loops are put through.
printf '#define EV_STANDALONE 1\n#include <dial9/ev-embed.h>\n' >"$work/source.c"
compile every_kind $CC -std=gnu11 -DEMBEDDED "$work/source.c" "$tests/libev_every_kind.c" \
	"$tests/libev_kinds_core.c" "$tests/libev_kinds_extra.c" "$work/objects/counters.o"
scenario="every kind, not recorded"
"$work/every_kind" --out="$work/alone" || fail "it does not run"
for backend in select poll epoll; do
	record "every kind, $backend" "" "$full" "$work/every_kind" --attach --backend=$backend
	same_log
done
for when in before after; do
	record "every kind, own callbacks set $when" "" "$full" "$work/every_kind" --attach --callbacks=$when
done

# The adapter of the shared library does not touch such a loop.
cat >"$work/foreign.c" <<-END
	#define EV_STANDALONE 1
	#define EV_API_STATIC 1
	#include <dial9/ev-embed.h>
	#include <dlfcn.h>
	int main(int argc, char **argv)
	{
		void *libev = dlopen("libev.so.4", RTLD_NOW);
		void *adapter = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
		struct ev_loop *loop = ev_loop_new(0), before = *loop;
		int (*attach)(struct ev_loop *) = NULL;

		if (adapter)
			*(void **)&attach = dlsym(adapter, "d9_ev_loop_attach");
		if (!libev || !attach || attach(loop) != -ENOTSUP ||
		    memcmp(&before, loop, sizeof(before)))
			return 1;
		ev_loop_destroy(loop);
		return 0;
	}
END
compile foreign $CC -std=gnu11 "$work/foreign.c"
scenario="an embedded loop given to the shared library's adapter"
"$work/foreign" "$adapter" || fail "it was not refused, or touched"

# What a program has to change is said.
scenario="an EV_CB_INVOKE of the program's own"
printf '#define EV_CB_INVOKE(w, ev) (w)->cb(EV_A_ (w), (ev))\n#include <dial9/ev-embed.h>\n' >"$work/own.c"
# shellcheck disable=SC2086
! $CC $flags -DEV_STANDALONE -fsyntax-only "$work/own.c" >"$work/said" 2>&1 || fail "it compiles"
grep -q 'error: #error .*call yours D9_EV_CB_INVOKE' "$work/said" || fail "nothing is said"

finish
