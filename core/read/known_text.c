/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "read/known_text.h"

struct d9_text d9__known_text(const struct d9_event *event, unsigned k)
{
	const struct d9_value *value = d9_event_known(event, k);

	if (!value || value->unresolved)
		return (struct d9_text){ "", 0 };
	return value->u.text;
}
