#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dial9-store against a strict store on loopback: signatures, requests, faults, credentials.
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
if [ ! -x "$top_builddir/core/dial9-store" ]; then
	echo "built without dial9-store"
	exit 77
fi
# Nothing of this machine's own.
for name in $(env | sed -n 's/^\(AWS_[A-Z0-9_]*\)=.*/\1/p') http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY; do
	unset "$name"
done
HOME=$work AWS_EC2_METADATA_DISABLED=true WORK=$work BUILD=$(cd "$top_builddir" && pwd)
export HOME AWS_EC2_METADATA_DISABLED WORK BUILD
node --test "$top_srcdir/tests/ship/store_signatures.mjs" "$top_srcdir/tests/ship/store_requests.mjs" \
	"$top_srcdir/tests/ship/store_faults.mjs" "$top_srcdir/tests/ship/store_credentials.mjs" \
	"$top_srcdir/tests/ship/store_strict.mjs"
