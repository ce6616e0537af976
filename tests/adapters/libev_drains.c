/* SPDX-License-Identifier: Apache-2.0 */
/* Runs scripts under libev's drain and ours, and says how many went otherwise. */

#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <ev.h>

#include "libev/attach.h"
#include "libev/drains.h"

int main(void)
{
	static char foreign[4096];
	struct ev_loop *loop = ev_loop_new(EVBACKEND_SELECT);

	if (d9_ev_loop_attach(NULL) != -EINVAL || d9_ev_loop_attach((void *)foreign) != -ENOTSUP)
		return 1;
	for (size_t i = 0; i < sizeof(foreign); i++) {
		if (foreign[i])
			return 1;
	}
	printf("%d\n", d9__libev_drain_compare(1000, 300000));
	ev_loop_destroy(loop);
	return 0;
}
