#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# dial9-store against OpenStack Swift with its S3 interface: four processes on loopback, a folder for its disk.
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
[ -x "$top_builddir/core/dial9-store" ] || {
	echo "built without dial9-store"
	exit 77
}
for program in swift-proxy-server swift-object-server swift-ring-builder; do
	command -v $program >/dev/null || {
		echo "there is no $program (Debian: swift-proxy swift-account swift-container swift-object)"
		exit 77
	}
done
pids=''
# shellcheck disable=SC2086 # words
trap 'status=$?; [ -z "$pids" ] || kill $pids 2>/dev/null; wait; rm -rf "$work"; exit $status' EXIT

# Four that nobody listens at, all open at once so that they differ.
# shellcheck disable=SC2046 # words
set -- $(node -e '
	const servers = [0, 0, 0, 0].map(() => require("net").createServer().listen(0, "127.0.0.1"));
	let n = 0;
	for (const server of servers)
		server.on("listening", () => ++n === 4 && servers.map((s) => (console.log(s.address().port), s.close())));')
proxy=$1
shift
mkdir -p "$work/etc" "$work/disks/disk"
cd "$work/etc"
user=$(id -un)
printf '[swift-hash]\nswift_hash_path_prefix = a\nswift_hash_path_suffix = b\n[swift-constraints]\n' >swift.conf
for kind in account container object; do
	swift-ring-builder $kind.builder create 4 1 0 >/dev/null
	swift-ring-builder $kind.builder add "r1z1-127.0.0.1:$1/disk" 1 >/dev/null
	# A warning is status 1.
	swift-ring-builder $kind.builder rebalance >/dev/null 2>&1 || [ -e $kind.ring.gz ]
	cat >$kind.conf <<END
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $1
swift_dir = $work/etc
devices = $work/disks
mount_check = false
workers = 0
user = $user
[pipeline:main]
pipeline = $kind-server
[app:$kind-server]
use = egg:swift#$kind
END
	shift
done
{
	cat <<END
[DEFAULT]
bind_ip = 127.0.0.1
bind_port = $proxy
swift_dir = $work/etc
workers = 0
user = $user
[pipeline:main]
pipeline = catch_errors gatekeeper proxy-logging cache listing_formats bulk s3api tempauth copy slo dlo proxy-logging proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:9
[filter:s3api]
use = egg:swift#s3api
location = eu-west-1
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = secret .admin
END
	for filter in catch_errors gatekeeper proxy_logging listing_formats bulk copy slo dlo; do
		printf '[filter:%s]\nuse = egg:swift#%s\n' "$(echo $filter | sed 's/proxy_/proxy-/')" $filter
	done
} >proxy.conf
for kind in account container object proxy; do
	swift-$kind-server $kind.conf >"$work/$kind.log" 2>&1 &
	pids="$pids $!"
done
cd - >/dev/null
SWIFT=http://127.0.0.1:$proxy HOME=$work WORK=$work BUILD=$(cd "$top_builddir" && pwd)
export SWIFT HOME WORK BUILD
# It answers once all its parts do.
# shellcheck disable=SC2016 # JavaScript
node -e '
	let tries = 600;
	const again = () => (tries-- ? setTimeout(look, 100) : process.exit(1));
	const look = () => fetch(`${process.env.SWIFT}/info`).then((answer) => answer.ok || again(), again);
	look();' || {
	cat "$work"/*.log | head -20
	echo "Swift does not start here"
	exit 77
}
node --test "$top_srcdir/tests/ship/store_swift.mjs"
