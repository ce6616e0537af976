/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "base/sandbox.h"

_Atomic(bool) d9__sandbox_shut;
