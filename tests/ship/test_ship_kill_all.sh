#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Shipper, traced program and store are killed at random moments: every segment that was sealed is stored, with equal copies, or
# in a gap that is written down.  By hand: kill_1000.sh.
exec sh "$top_srcdir/tests/ship/kill_1000.sh" "${D9_KILLS:-40}"
