#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Is there a node that is new enough for the tests in JavaScript?  18 is Debian 12's.
node -e 'process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)' 2>/dev/null
