# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh
# Sourced by tests that ask DuckDB: they are skipped without it.
# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
if [ ! -e "${D9_TEST_NPM:-none}/node_modules/@duckdb/node-api" ]; then
	echo "there is no @duckdb/node-api: tests/support/install_npm.sh DIR, then D9_TEST_NPM=DIR"
	exit 77
fi
export D9_TEST_NPM
