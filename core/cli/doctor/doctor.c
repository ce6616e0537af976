/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>

void d9__doctor_note(struct d9__doctor *doctor, const char *name, enum d9__check_result result,
		     const char *format, ...)
{
	struct d9__check *check = &doctor->checks[doctor->n];
	va_list args;

	if (doctor->n == D9__CHECKS_MAX)
		return;
	*check = (struct d9__check){ .name = name, .result = result };
	va_start(args, format);
	vsnprintf(check->text, sizeof(check->text), format, args);
	va_end(args);
	doctor->n++;
}

void d9__doctor_advise(struct d9__doctor *doctor, const char *format, ...)
{
	struct d9__check *check = &doctor->checks[doctor->n - 1];
	va_list args;

	va_start(args, format);
	vsnprintf(check->advice, sizeof(check->advice), format, args);
	va_end(args);
}
