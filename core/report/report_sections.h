/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of the text report. */

#pragma once

#include "report/report.h"
#include "text/page.h"

/* Everything after the findings. */
void d9__report_sections(const struct d9__report *report, const struct d9__report_style *style,
			 struct d9__page *page);
