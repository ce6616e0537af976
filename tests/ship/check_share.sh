#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What PKGDATADIR/ship has for those who run a shipper is true: policies that allow what is named, under the prefix and
# with TLS; pods whose command runs; an image that has what dial9 needs.  check_radosgw.sh has a store judge the policies.
set -eu

# shellcheck source=tests/toolkit/node.sh
. "$top_srcdir/tests/toolkit/node.sh"
[ -x "$top_builddir/core/dial9-store" ] || {
	echo "built without dial9-store"
	exit 77
}
share=$(cd "$top_srcdir" && pwd)/core/ship/share
build=$(cd "$top_builddir" && pwd)
fail() {
	echo "FAILED: $1"
	exit 1
}

SHARE=$share node -e '
	const assert = require("assert"), fs = require("fs"), { SHARE } = process.env;
	const read = (name) => JSON.parse(fs.readFileSync(`${SHARE}/${name}`, "utf8"));
	for (const name of ["ship", "serve", "compact"])
		for (const { Sid, Effect, Action, Resource, Condition } of read(`policy-${name}.json`).Statement) {
			assert.deepEqual([Effect, Condition.Bool], ["Allow", { "aws:SecureTransport": "true" }], Sid);
			assert.ok(Action.every((one) => /^s3:[A-Za-z]+$/.test(one)), Sid);
			/* A bucket as such is listed alone, and only below the prefix. */
			if (Action[0] === "s3:ListBucket")
				assert.deepEqual([Action.length, Resource, Condition.StringLike], [1, ["arn:aws:s3:::BUCKET"], { "s3:prefix": ["PREFIX/*"] }]);
			else
				assert.match(Resource.join(), /^arn:aws:s3:::BUCKET\/PREFIX\/(parquet\/)?\*$/, Sid);
		}
	assert.ok(read("lifecycle.json").Rules.every(({ Filter }) => Filter.Prefix.startsWith("PREFIX/")));
'

# ---- the image: its steps are those of this tree, and it has each library that the two programs need ----
steps=$(sed -n 's/^RUN //p' "$share/Containerfile")
for step in 'tests/support/install_packages.sh build' 'autoreconf -fi' './configure --prefix=/usr' make 'make install DESTDIR=/image'; do
	echo "$steps" | grep -qxF "$step" || fail "the Containerfile has no step '$step'"
done
(cd "$top_srcdir" && [ -x tests/support/install_packages.sh ] && [ -f configure.ac ]) || fail "a step is of no file here"
# Neither a jobserver nor variables of the make that called us.
unset MAKEFLAGS MFLAGS MAKELEVEL 2>/dev/null || :
make -C "$build" install DESTDIR="$work/image" >"$work/log" 2>&1 || {
	tail "$work/log"
	fail "make install DESTDIR="
}
dial9=$(find "$work/image" -path '*/bin/dial9' -type f) store=$(find "$work/image" -name dial9-store -type f)
if [ -z "$dial9" ] || [ -z "$store" ]; then fail "make install DESTDIR= brings no dial9 or no dial9-store"; fi
for file in "$share"/*; do
	case $file in *.am) continue ;; esac
	[ -n "$(find "$work/image" -path "*/dial9/ship/${file##*/}")" ] || fail "${file##*/} is not installed"
done
if grep -q '^VERSION_CODENAME=bookworm' /etc/os-release && command -v readelf >/dev/null; then
	for library in $(readelf -d "$dial9" "$store" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u); do
		package=$(dpkg-query -S "*/$library" | sed -n 's/^\([^:]*\):.*/\1/p' | grep -v 'cross$\|i386\|x32' | head -n 1)
		[ "$package" = libc6 ] || grep -q " $package\( \|\$\)" "$share/Containerfile" || fail "the image lacks $package, which has $library"
	done
fi

# ---- pods: what they start runs, and finds a segment there ----
python3 -c 'import yaml' 2>/dev/null || {
	echo "there is no python3 with yaml (Debian: python3-yaml)"
	exit 77
}
mkdir -m 700 "$work/node" "$work/node/svc" "$work/node/svc/abcd-1"
"$build/tests/cli/make_trace" held zstd "$work/node/svc/abcd-1/trace.0.bin.zst" 1000000
mkdir "$work/pod"
cat >"$work/run.py" <<'END_PYTHON'
import os, subprocess, sys, yaml
share, work, program = sys.argv[1:]

def started(container):
    """What the pod runs, with its paths here and nothing sent."""
    values = {one["name"]: "here" for one in container["env"]}
    words = container.get("command", ["dial9"]) + container["args"]
    for name, value in values.items():
        words = [word.replace("$(%s)" % name, value) for word in words]
    return [word.replace("/var/lib/dial9", work + "/node").replace("/traces", work + "/pod").replace("BUCKET", "bucket").replace("PREFIX", "p")
            for word in words] + ["--dry-run"]

def run(container):
    answer = subprocess.run(started(container), env={"PATH": os.path.dirname(program) + ":/usr/bin:/bin", "HOME": work},
                            capture_output=True, text=True, timeout=60)
    assert answer.returncode == 0 and answer.stderr == "", answer
    return answer.stdout

def load(name):
    with open(os.path.join(share, name)) as text:
        return yaml.safe_load(text)

daemon = load("kubernetes-daemonset.yaml")["spec"]["template"]["spec"]
keys = run(daemon["containers"][0])
assert keys.startswith("p/version=1/date=") and "/instance=here/boot=abcd-1/" in keys, keys
pod = load("kubernetes-sidecar.yaml")["spec"]
sidecar, = pod["initContainers"]
assert run(sidecar) == ""
assert os.stat(work + "/pod/dial9").st_mode & 0o777 == 0o700
directory = pod["containers"][0]["env"][0]
assert directory == {"name": "DIAL9_TRACE_DIR", "value": sidecar["args"][-1]}, directory
for spec in pod, daemon:
    names = {volume["name"] for volume in spec["volumes"]}
    for container in spec["containers"] + spec.get("initContainers", []):
        assert {mount["name"] for mount in container["volumeMounts"]} <= names
    assert spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"]
END_PYTHON
unset DIAL9_TRACE_DIR DIAL9_PRELOAD LD_PRELOAD 2>/dev/null || :
python3 "$work/run.py" "$share" "$work" "$build/core/dial9"
