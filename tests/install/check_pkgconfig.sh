#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Each installed .pc file is enough to compile, link and run a program.
# Arguments: the .pc files.
set -eu

test -z "$DESTDIR" || exit 0 # paths in the .pc files are not DESTDIR's
test "$SANITIZER" = no || exit 0

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
for pc; do
	name=$(basename "$pc" .pc)
	printf '#include <dial9/%s.h>\nint main(void) { return 0; }\n' "${name#dial9-}" >"$dir/main.c"
	$CC -Wl,--no-as-needed -o "$dir/main" "$dir/main.c" $($PKG_CONFIG --cflags --libs "$name")
	"$dir/main"
	echo "installed: $name"
done
