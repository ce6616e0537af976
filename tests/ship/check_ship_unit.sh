#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The unit of the shipper leaves it no more rights than it needs: systemd rates it below 1.5 of 10.
set -eu

command -v systemd-analyze >/dev/null || {
	echo "no systemd-analyze (Debian: systemd)"
	exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unit=$work/dial9-ship@daemon.service
sed -e 's|@bindir@|/usr/bin|g' -e 's|%i|daemon|g' "$top_srcdir/core/systemd/dial9-ship@.service.in" >"$unit"
systemd-analyze security --offline=true --threshold=15 "$unit" >"$work/rated" 2>&1 || {
	tail -n 3 "$work/rated"
	exit 1
}
! grep -q '^RemoveIPC' "$unit"
