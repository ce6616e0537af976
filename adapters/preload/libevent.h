/* SPDX-License-Identifier: Apache-2.0 */
/* Exports of the preload library that learn of a libevent that is loaded later. */

#pragma once

#include <dial9/export.h>

/*
 * Nothing else may be added lightly: a program that embeds a copy of a loop library would get
 * half of it from here.  hook/first_call.h decides whom each call means.
 */

struct event_base;
struct event_config;

D9_API struct event_base *event_base_new(void);
D9_API struct event_base *event_base_new_with_config(const struct event_config *config);
D9_API struct event_base *event_init(void);
