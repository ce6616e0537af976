#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Tests of the viewer in a headless Chromium, for which $D9_TEST_NPM holds puppeteer-core (tests/support/install_npm.sh):
#
#	check_viewer.sh test_NAME.mjs...
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
# The shell is the same browser without a window to draw.
CHROMIUM=$(command -v chromium-headless-shell || command -v chromium || command -v chromium-browser || command -v google-chrome) || {
	echo "there is no chromium"
	exit 77
}
if [ ! -e "${D9_TEST_NPM:-none}/node_modules/puppeteer-core" ]; then
	echo "there is no puppeteer-core: tests/support/install_npm.sh DIR, then D9_TEST_NPM=DIR"
	exit 77
fi
if "$top_builddir/core/dial9" serve /nonexistent 2>&1 | grep -q 'built without libevent'; then
	echo "built without libevent"
	exit 77
fi
case $* in
*test_bucket* | *test_fleet*)
	[ -x "$top_builddir/core/dial9-store" ] || {
		echo "built without dial9-store"
		exit 77
	}
	unset XDG_CACHE_HOME
	;;
esac
WORK=$work
# Pictures of what the tests have seen stay for a person to look at.
D9_TEST_PICTURES=${D9_TEST_PICTURES:-$(cd "$top_builddir" && pwd)/tests/viewer/pictures}
export CHROMIUM WORK D9_TEST_NPM D9_TEST_PICTURES
# As root the browser would go before all else that runs, other tests among it.
as=
[ "$(id -u)" != 0 ] || ! setpriv --bounding-set=-sys_nice true 2>/dev/null || as='setpriv --bounding-set=-sys_nice'
# shellcheck disable=SC2086 # words
DIAL9=$top_builddir/core/dial9 $as node --test "$@"
