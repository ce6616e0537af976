/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "analyze/population.h"
#include "base/array.h"

void d9__population_release(struct d9__population *population)
{
	d9__texts_release(&population->loops);
	free(population->first);
	*population = (struct d9__population){ 0 };
}

int d9__population_add(struct d9__population *population, const char *loop, size_t len,
		       uint64_t tasks)
{
	uint32_t number;

	if (d9__texts_number(&population->loops, loop, len, &number))
		return -ENOMEM;
	if (number >= population->n) {
		if (!d9__array_reach(population->first, &population->n, number))
			return -ENOMEM;
		population->first[number] = tasks;
	}
	if (tasks > population->first[number] &&
	    tasks - population->first[number] > population->growth)
		population->growth = tasks - population->first[number];
	return 0;
}
