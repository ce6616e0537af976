/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "analyze/own_frames.h"
#include "export/profile_view.h"

/* True if |frames|, of one address, are |callback|'s function, or what was inlined into it. */
static bool is_function(const struct d9__frames *frames, const struct d9__callback *callback)
{
	const char *function = frames->items[frames->n - 1].function;
	size_t len;
	const char *name = d9__callback_name(callback, &len);

	return function && strlen(function) == len && !memcmp(function, name, len);
}

/*
 * Cut |view| behind the function of |stack|'s callback, else in front of the recorder's frame that
 * called it: a function that ends in a call of another one has no frame of its own.
 */
static void cut(struct d9__profile_view *view, const struct d9__profile_stack *stack,
		const enum d9__frame_class *classes, size_t own, size_t function)
{
	size_t caller = own;

	while (caller < stack->n && classes[caller] != D9__FRAME_OURS)
		caller++;
	if (function < stack->n) {
		view->n = function + 1;
		view->named = true;
	} else {
		/* A stack that is the recorder's alone has no frame of the callback. */
		view->n = caller < stack->n ? caller : own == stack->n ? 0 : stack->n;
	}
	view->rooted = view->n < stack->n || view->named;
}

void d9__profile_view(struct d9__profile *profile, const struct d9__profile_stack *stack,
		      struct d9__profile_view *view)
{
	static enum d9__frame_class classes[D9__PROFILE_FRAMES];
	bool is_cut = profile->wanted.callback && stack->callback && !profile->raw;
	size_t function = stack->n, own = 0;

	*view = (struct d9__profile_view) { .n = stack->n };
	if (profile->raw || (profile->wanted.own_frames && !is_cut))
		return;
	for (size_t i = 0; i < stack->n; i++) {
		struct d9__frames frames;

		d9__profile_frames(profile, stack, i, &frames);
		classes[i] = d9__frame_class_of(frames.items[0].module, frames.items[0].function);
		if (is_cut && is_function(&frames, stack->callback))
			function = i;
	}
	/* Of allocations and calls that blocked the innermost frame is the program's. */
	own = d9__own_frames(classes, stack->n);
	if (is_cut)
		cut(view, stack, classes, own, function);
	if (!profile->wanted.own_frames)
		d9__own_frames_hide(classes, view->n, own, view->hidden);
}
