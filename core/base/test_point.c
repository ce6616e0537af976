/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stddef.h>

#include "base/test_point.h"

void (*volatile d9__test_point_hook)(enum d9__test_point point) = NULL;
