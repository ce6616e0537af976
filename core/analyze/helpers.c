/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/helpers.h"

int d9__helper_ran(struct d9__callback *callback, const struct d9__helper_run *run)
{
	struct d9__helper *helper = callback->helper;

	if (!helper)
		helper = callback->helper = calloc(1, sizeof(*helper));
	if (!helper)
		return -ENOMEM;
	helper->runs++;
	helper->wait_ns += run->wait_ns;
	helper->run_ns += run->run_ns;
	if (run->wait_ns >= helper->longest.wait_ns)
		helper->longest = *run;
	if (run->run_ns >= helper->slowest.run_ns)
		helper->slowest = *run;
	return 0;
}
