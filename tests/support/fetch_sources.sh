#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Download, into DIR, the source packages that some tests build another libevent or libev from:
#
#	fetch_sources.sh DIR
#
# They come from the mirror that apt already uses, by lists of our own: apt's are not touched and no root
# is needed.  What cannot be had is left out, with a word on stderr; the tests then skip.
set -u

mkdir -p "$1" && dir=$(cd "$1" && pwd) || exit 1
cd "$dir" || exit 1
# libevent itself, openmpi for the libevent 2.0 inside, and libev, which programs compile into themselves.
wanted=
ls libevent_*.orig.tar.* >/dev/null 2>&1 || wanted=libevent
ls openmpi_*.orig.tar.* >/dev/null 2>&1 || wanted="$wanted openmpi"
ls libev_*.orig.tar.* >/dev/null 2>&1 || wanted="$wanted libev"
[ -n "$wanted" ] || exit 0

command -v apt-get >/dev/null || {
	echo "fetch_sources.sh: no apt-get: no other loop libraries are tested" >&2
	exit 0
}
mkdir -p apt/lists/partial apt/archives/partial apt/sources
(
	[ ! -f /etc/apt/sources.list ] || cat /etc/apt/sources.list
	for file in /etc/apt/sources.list.d/debian.sources; do
		[ ! -f "$file" ] || awk '
			/^URIs:/ { uri = $2 } /^Suites:/ { suite = $2 } /^Components:/ { part = $2 }
			/^Signed-By:/ { key = "[signed-by=" $2 "] " }
			/^$/ { if (uri) print "deb", key uri, suite, part; uri = key = "" }
			END { if (uri) print "deb", key uri, suite, part }' "$file"
	done
) | awk '$1 == "deb" && !/security|updates|backports/ { sub(/^deb/, "deb-src"); print; exit }' \
	>apt/sources/src.list
quiet_apt() {
	timeout 300 apt-get -q -o Dir::Etc::SourceList="$dir/apt/sources/src.list" -o Dir::Etc::SourceParts=/dev/null \
		-o Dir::State::Lists="$dir/apt/lists" -o Dir::Cache="$dir/apt" -o APT::Sandbox::User=root "$@" \
		>apt/log 2>&1
}
if quiet_apt update; then
	for name in $wanted; do
		quiet_apt source --download-only "$name" || {
			echo "fetch_sources.sh: no source of $name:" >&2
			tail -n 2 apt/log >&2
		}
	done
else
	echo "fetch_sources.sh: no lists of sources: no other loop libraries are tested" >&2
	tail -n 2 apt/log >&2
fi
rm -rf apt
