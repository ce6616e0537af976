/* SPDX-License-Identifier: Apache-2.0 */
/* A module with names of libevent, and an ABI, of its own. */

#define COPY_API __attribute__((visibility("default")))

struct event_base {
	int magic;
};

COPY_API struct event_base *event_base_new(void);
COPY_API struct event_base *event_init(void);
COPY_API int event_base_loop(struct event_base *base);
COPY_API int copy_ask(void);

struct event_base *event_base_new(void)
{
	static struct event_base base = { 42 };

	return &base;
}

struct event_base *event_init(void)
{
	return event_base_new();
}

int event_base_loop(struct event_base *base)
{
	return base->magic;
}

int copy_ask(void)
{
	return event_base_loop(event_init());
}
