/* SPDX-License-Identifier: Apache-2.0 */
/* Hot: marks the functions that each callback goes through.  The linker lays them side by side. */

#pragma once

#define D9__HOT __attribute__((hot))
