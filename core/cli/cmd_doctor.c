/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/doctor/doctor.h"
#include "cli/doctor/doctor_command.h"
#include "cli/doctor/doctor_libraries.h"
#include "cli/doctor/doctor_recorders.h"
#include "cli/doctor/doctor_system.h"
#include "text/text.h"
#include "tool/args.h"

#define TEXT_AT 23

static const struct d9__opt opts[] = {
	{ 'j', "json", NULL, "one JSON object" },
	{ 0, NULL, NULL, NULL },
};

static const struct d9__usage usage = {
	.command = "doctor",
	.synopsis = "[OPTIONS] [[--] CMD [ARGUMENTS]]",
	.text = "Check whether programs can be recorded here, by recording one and by asking\n"
		"the system.\n"
		"With CMD: whether that can be recorded, with the loop libraries that it uses.\n"
		"It is not run.\n"
		"Exit status 1: something fails; the line below it says how to mend it.\n",
	.opts = opts,
	.stop_at_operand = true,
};

static void put_text(struct d9__text_out *out, const struct d9__doctor *doctor)
{
	static const char *const results[] = { "OK", "WARN", "FAIL" };

	for (size_t i = 0; i < doctor->n; i++) {
		const struct d9__check *check = &doctor->checks[i];

		d9__text_printf(out, "%-5s %-*s", results[check->result], TEXT_AT - 6, check->name);
		d9__text_wrapped(out, check->text, strlen(check->text), TEXT_AT);
		if (!check->advice[0])
			continue;
		d9__text_printf(out, "%*s", TEXT_AT, "mend it: ");
		d9__text_wrapped(out, check->advice, strlen(check->advice), TEXT_AT);
	}
}

static void put_json(struct d9__text_out *out, const struct d9__doctor *doctor, bool failed)
{
	static const char *const results[] = { "ok", "warn", "fail" };

	d9__text_string(out, failed ? "{\"ok\":false,\"checks\":[" : "{\"ok\":true,\"checks\":[");
	for (size_t i = 0; i < doctor->n; i++) {
		const struct d9__check *check = &doctor->checks[i];

		d9__text_string(out, i ? ",{\"name\":" : "{\"name\":");
		d9__text_json(out, check->name, strlen(check->name));
		d9__text_printf(out, ",\"result\":\"%s\",\"text\":", results[check->result]);
		d9__text_json(out, check->text, strlen(check->text));
		d9__text_string(out, ",\"advice\":");
		if (check->advice[0])
			d9__text_json(out, check->advice, strlen(check->advice));
		else
			d9__text_string(out, "null");
		d9__text_char(out, '}');
	}
	d9__text_string(out, "]}\n");
}

static int run(bool json, const char *command)
{
	static struct d9__loop_uses uses;
	static struct d9__doctor doctor;
	static struct d9__text_out out;
	bool failed = false;
	int status;

	if (command)
		d9__doctor_command(&doctor, command, &uses);
	d9__doctor_libraries(&doctor, command ? &uses : NULL);
	d9__doctor_system(&doctor);
	d9__doctor_recorders(&doctor);
	for (size_t i = 0; i < doctor.n; i++)
		failed |= doctor.checks[i].result == D9__CHECK_FAIL;
	d9__text_init(&out, STDOUT_FILENO);
	if (json)
		put_json(&out, &doctor, failed);
	else
		put_text(&out, &doctor);
	status = d9__text_finish(&out, "doctor");
	return status ? status : failed ? D9__EXIT_FINDING : D9__EXIT_OK;
}

int d9__cmd_doctor(int argc, char **argv)
{
	struct d9__args args = { .usage = &usage, .argc = argc, .argv = argv };
	bool json = false;
	int key;

	while ((key = d9__args_next(&args)) > 0)
		json = true;
	if (key < 0)
		return d9__args_exit(key);
	return run(json, args.first < argc ? argv[args.first] : NULL);
}
