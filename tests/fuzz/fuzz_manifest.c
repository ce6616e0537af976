/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any text as the manifest of a dump: what is taken of it is whole and names nothing outside of its directory, and what is
 * refused is told why.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "analyze/kept_dump.h"
#include "fuzz/fuzz.h"
#include "text/units.h"

static void check_fired(const struct d9__kept_dump *dump)
{
	char measure[2 * D9__UNITS_MAX];

	fuzz_require(dump->n_fired <= dump->fired_count, "what is listed is counted");
	for (size_t i = 0; i < dump->n_fired; i++) {
		const struct d9__kept_fire *fire = &dump->fired[i];

		fuzz_require(fire->trigger && fire->condition, "what fired has a name");
		memset(measure, 'x', sizeof(measure));
		d9__kept_fire_measure(fire, measure, sizeof(measure));
		fuzz_require(memchr(measure, '\0', sizeof(measure)) != NULL, "a measure has an end");
		fuzz_require(!*d9__kept_fire_unit(fire) == !*measure, "what has a unit has a measure");
	}
}

static void check_segments(const struct d9__kept_dump *dump)
{
	for (size_t i = 0; i < dump->n_segments; i++) {
		const char *name = dump->segments[i].name;

		fuzz_require(!strchr(name, '/') && name[0] && strcmp(name, "..") != 0, "a segment is beside its manifest");
		fuzz_require(strstr(name, ".bin") != NULL, "a segment has the name of one");
		for (size_t k = 0; k < i; k++)
			fuzz_require(strcmp(name, dump->segments[k].name) != 0, "a segment is listed once");
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct d9__kept_dump dump;
	char *why;
	int err = d9__kept_dump_parse(&dump, (const char *)data, size, &why);

	fuzz_require(!err == !why && (!err || err == -EBADMSG), "a refusal has a reason");
	if (!err) {
		fuzz_require(dump.id && strlen(dump.id) == 26 && dump.trigger, "a dump has an id and a trigger");
		fuzz_require(*d9__kept_state_name(dump.state), "a dump has a state");
		check_fired(&dump);
		check_segments(&dump);
	}
	free(why);
	d9__kept_dump_release(&dump);
	return 0;
}
