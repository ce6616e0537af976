/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of the preload library that learn of a libev that is loaded later; as preload/libevent.h. */

#pragma once

#include <dial9/export.h>

struct ev_loop;

D9_API struct ev_loop *ev_default_loop(unsigned flags);
D9_API struct ev_loop *ev_loop_new(unsigned flags);
