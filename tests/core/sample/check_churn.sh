#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Modules that come and go, at addresses of others, while threads are sampled: no sample faults, waits for the
# loader, or goes through the wrong module once the tables were refreshed.  D9_LONG=1: 200 modules.
set -eu

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
n=0 modules=24 rounds=400
[ -z "${D9_LONG-}" ] || modules=200 rounds=4000
while [ $n -lt $modules ]; do
	n=$((n + 1))
	# What they are known by: a build-id, or what they hold.
	id=$([ $((n % 2)) = 0 ] && echo none || echo sha1)
	# Several words may be meant.
	# shellcheck disable=SC2086
	${CC:-cc} -O2 -fno-stack-protector -fPIC -shared "-DFRAME=$((n * 16))" "-Wl,--build-id=$id" \
		-o "$dir/$n.so" "$top_srcdir/tests/core/sample/module.c"
done
"$top_builddir/tests/core/sample/churn_modules" $rounds "$dir"/*.so
