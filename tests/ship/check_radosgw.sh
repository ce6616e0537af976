#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dial9-store and dial9 ship against Ceph's S3 interface, with the policies that we install: a monitor, one disk in
# memory and the gateway, as this user and on loopback.
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
[ -x "$top_builddir/core/dial9-store" ] || {
	echo "built without dial9-store"
	exit 77
}
for program in radosgw ceph-mon ceph-osd openssl; do
	command -v $program >/dev/null || {
		echo "there is no $program (Debian: radosgw ceph-mon ceph-osd openssl)"
		exit 77
	}
done
# Each ends by itself, and is ended hard where it waits for what is left of connections; the gateway first, which else
# waits for the others.
pids=''
start() {
	timeout -k 10 600 "$@" >"$work/$1.out.log" 2>&1 &
	pids="$! $pids"
}
stop() {
	for pid in $pids; do
		kill "$pid" 2>/dev/null || true
		wait "$pid" || true
	done
}
# shellcheck disable=SC2154 # set by what is trapped
trap 'status=$?; stop; rm -rf "$work"; exit $status' EXIT

# skip WHAT: with what the programs have said.
skip() {
	tail -n 5 "$work"/*.log 2>/dev/null | head -n 40
	echo "Ceph does not start here: $1"
	exit 77
}
# Four that nobody listens at, all open at once so that they differ.
# shellcheck disable=SC2046 # words
set -- $(node -e '
	const servers = [0, 0, 0, 0].map(() => require("net").createServer().listen(0, "127.0.0.1"));
	let n = 0;
	for (const server of servers)
		server.on("listening", () => ++n === 4 && servers.map((s) => (console.log(s.address().port), s.close())));')
fsid=$(node -p 'crypto.randomUUID()')
conf=$work/ceph.conf
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" -days 2 \
	-subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 2>/dev/null
cat >"$conf" <<END_CONF
[global]
fsid = $fsid
mon host = v2:127.0.0.1:$1
mon initial members = a
public addr = 127.0.0.1
cluster addr = 127.0.0.1
auth cluster required = none
auth service required = none
auth client required = none
ms mon client mode = crc
osd objectstore = memstore
memstore device bytes = 1073741824
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 1
osd pool default pgp num = 1
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon data = $work/mon
mon data avail crit = 0
osd data = $work/osd
rgw data = $work/rgw
run dir = $work
admin socket =
pid file =
crash dir = $work
log file = $work/\$name.log
keyring = /dev/null
[client.rgw]
rgw frontends = beast endpoint=127.0.0.1:$2 ssl_endpoint=127.0.0.1:$3 ssl_certificate=$work/cert.pem ssl_private_key=$work/key.pem
rgw enable ops log = false
rgw enable lc threads = false
rgw enable gc threads = false
rgw enable quota threads = false
rgw run sync thread = false
END_CONF
mkdir "$work/osd" "$work/rgw"
unset CEPH_CONF CEPH_ARGS

# ceph ARGUMENTS...: one of its commands, for 60 s at most.
ceph() {
	timeout 60 ceph -c "$conf" --connect-timeout 30 "$@" >>"$work/ceph.log" 2>&1
}
monmaptool --create --fsid "$fsid" --addv a "[v2:127.0.0.1:$1]" "$work/monmap" >"$work/mkfs.log" 2>&1 || skip monmaptool
ceph-mon -c "$conf" -i a --mkfs --monmap "$work/monmap" >>"$work/mkfs.log" 2>&1 || skip "ceph-mon --mkfs"
start ceph-mon -c "$conf" -i a -f
disk=$(node -p 'crypto.randomUUID()')
ceph osd new "$disk" 0 || skip "ceph osd new"
ceph-osd -c "$conf" -i 0 --mkfs --osd-uuid "$disk" >>"$work/mkfs.log" 2>&1 || skip "ceph-osd --mkfs"
start ceph-osd -c "$conf" -i 0 -f
for name in owner ship serve compact; do
	timeout 120 radosgw-admin -c "$conf" -n client.rgw user create --uid=$name --display-name=$name --access-key="ID$name" \
		--secret="secret-$name" >>"$work/users.log" 2>&1 || skip "radosgw-admin user create"
done
start radosgw -c "$conf" -n client.rgw -f

RADOSGW=http://127.0.0.1:$2 RADOSGW_TLS=https://127.0.0.1:$3 NODE_EXTRA_CA_CERTS=$work/cert.pem
HOME=$work WORK=$work BUILD=$(cd "$top_builddir" && pwd) SHARE=$(cd "$top_srcdir" && pwd)/core/ship/share
export RADOSGW RADOSGW_TLS NODE_EXTRA_CA_CERTS HOME WORK BUILD SHARE
for name in $(env | sed -n 's/^\(AWS_[A-Z0-9_]*\)=.*/\1/p') http_proxy https_proxy HTTPS_PROXY all_proxy ALL_PROXY; do
	unset "$name"
done
# shellcheck disable=SC2016 # JavaScript
timeout 120 node -e '
	const again = () => setTimeout(look, 100);
	const look = () => fetch(process.env.RADOSGW).then(() => {}, again);
	look();' || skip radosgw
timeout 300 node --test "$top_srcdir/tests/ship/store_radosgw.mjs"
