#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Run one test of `make check`.  One that hangs is one that fails.  Programs run under $VALGRIND, if
# that is set; it looks at values and addresses, for leaks are AddressSanitizer's.
start=$(date +%s)
case $1,${VALGRIND:-} in
*.sh,* | *,) timeout -k 10 900 "$@" ;;
*)
	timeout -k 10 900 "$top_builddir/libtool" --silent --mode=execute "$VALGRIND" --quiet \
		--error-exitcode=1 --leak-check=no "$@"
	;;
esac
status=$?
echo "took $(($(date +%s) - start)) s"
exit $status
