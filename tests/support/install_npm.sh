#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Install, into DIR, what tests in JavaScript take from npm:
#
#	install_npm.sh DIR
#
# What cannot be had is told on stderr; the tests then skip.
set -u

packages='puppeteer-core@24 axe-core@4 speedscope@1 @duckdb/node-api@1.5.6-r.1 hyparquet@1 hyparquet-compressors@1'
mkdir -p "$1" && dir=$(cd "$1" && pwd) || exit 1
missing=
for package in $packages; do
	[ -e "$dir/node_modules/${package%@*}" ] || missing=yes
done
[ -n "$missing" ] || exit 0
command -v npm >/dev/null || {
	echo "install_npm.sh: no npm: neither the viewer in a browser nor tables of Parquet are tested" >&2
	exit 0
}
echo "installing from npm: $packages"
# Words are meant.
# shellcheck disable=SC2086
(cd "$dir" && echo '{ "private": true }' >package.json &&
	npm install --no-audit --no-fund --ignore-scripts $packages >npm.log 2>&1) ||
	echo "install_npm.sh: npm fails: neither the viewer in a browser nor tables of Parquet are tested; see $dir/npm.log" >&2
exit 0
