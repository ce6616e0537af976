#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Time to the first picture and frame times of the viewer, on traces recorded for the purpose:
#
#	D9_TEST_NPM=DIR bench_viewer.sh BENCH_FLUSH DIAL9 [MILLIONS OF EVENTS...]
set -eu

make=$1 dial9=$2
shift 2
here=$(dirname "$0")
CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
	echo "there is no chromium"
	exit 77
}
[ -e "${D9_TEST_NPM:-none}/node_modules/puppeteer-core" ] || {
	echo "there is no puppeteer-core: tests/support/install_npm.sh DIR, then D9_TEST_NPM=DIR"
	exit 77
}
export CHROMIUM
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
[ $# -gt 0 ] || set -- 1 10 30
for millions; do
	rm -rf "${scratch:?}"/*
	echo "recorded: $("$make" --make "$scratch" "${millions}000000")"
	node "$here/bench_viewer.mjs" "$dial9" "$scratch" "$millions"
done
