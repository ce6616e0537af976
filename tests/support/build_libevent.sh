#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Compile an unpacked libevent 2.0, 2.1 or 2.2 without its configure, which would take most of a minute:
#
#	build_libevent.sh SOURCE PREFIX [FLAG...]
#
# What the compiler and libc here can do stands in the installed libevent's event-config.h.  PREFIX gets
# include/, lib/libevent.so and lib/libevent_pthreads.so with the sonames of upstream's own build;
# without what SOURCE lacks (openmpi's copy of 2.0 has no bufferevents).  FLAG goes to the compiler.
set -eu

source=$(cd "$1" && pwd) prefix=$2
shift 2
: "${CC:=cc}"

config=$(echo '#include <event2/event-config.h>' | $CC -M -xc - | tr ' ' '\n' | grep 'event-config.h$')
mkdir -p "$prefix/include/event2" "$prefix/lib" "$prefix/objects"
prefix=$(cd "$prefix" && pwd)
cp "$source"/*.h "$prefix/include"
cp "$source"/include/event2/*.h "$prefix/include/event2"
[ ! -d "$source/include/sys" ] || cp -R "$source/include/sys" "$prefix/include"

# The version is the source's, not the installed library's.
version=$(sed -n 's/.*AC_INIT(\[*libevent\]*, *\[*\([0-9.]*[-a-z]*\).*/\1/p' "$source/configure.ac")
[ -n "$version" ] || exit 1
major=${version%.*}
number=$(echo "$version" | awk -F. '{ printf "0x%02d%02d%02d00", $1, $2, $3 }')
sed -e "s/\(EVENT__NUMERIC_VERSION\) .*/\1 $number/" -e "s/\(EVENT__\(PACKAGE_\)*VERSION\) .*/\1 \"$version\"/" \
	"$config" >"$prefix/include/event2/event-config.h"
case $major in
2.0)
	soname=2.0.so.5
	sed -i 's/EVENT__/_EVENT_/g; s/EVENT_CONFIG_H_INCLUDED_/_EVENT_CONFIG_H_/' \
		"$prefix/include/event2/event-config.h"
	# openmpi gives every function a name of its own.
	[ ! -f "$source/opal_rename.h" ] || : >"$prefix/include/opal_rename.h"
	;;
2.1) soname=2.1.so.7 ;;
*) soname=$major.so.1 ;;
esac
printf '#define _GNU_SOURCE 1\n' >"$prefix/include/evconfig-private.h"

core='buffer bufferevent bufferevent_filter bufferevent_pair bufferevent_ratelim bufferevent_sock event evmap
	evthread evutil evutil_rand evutil_time listener log signal signalfd strlcpy select poll epoll watch'
extra='event_tagging evdns http evrpc ws sha1'
[ -f "$source/bufferevent.c" ] || extra=
cd "$prefix/objects"
jobs='' sources=''
for name in $core $extra evthread_pthread; do
	[ -f "$source/$name.c" ] || continue
	sources="$sources $name"
done
# Two at a time: the machine is shared.
for name in $sources; do
	$CC -O1 -g -w -fPIC -pthread -D_GNU_SOURCE -fno-strict-aliasing "$@" -I"$prefix/include" -I"$source/compat" \
		-c "$source/$name.c" -o "$name.o" &
	if [ -n "$jobs" ]; then
		wait "$jobs"
		jobs=
	else
		jobs=$!
	fi
done
wait
for name in $sources; do
	[ -f "$name.o" ] || exit 1
done
mv evthread_pthread.o pthread.o_
$CC -shared -Wl,-soname,libevent-$soname -Wl,-z,now ./*.o -pthread -o "$prefix/lib/libevent-$soname"
ln -sf libevent-$soname "$prefix/lib/libevent.so"
$CC -shared -Wl,-soname,libevent_pthreads-$soname pthread.o_ -L"$prefix/lib" -levent -pthread \
	-o "$prefix/lib/libevent_pthreads-$soname"
ln -sf libevent_pthreads-$soname "$prefix/lib/libevent_pthreads.so"
echo "$version"
