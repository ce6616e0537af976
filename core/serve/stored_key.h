/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stored key: what the name of an object in a bucket tells.  Everybody who may write there chooses names: what is of no form that
 * dial9 or its original writes is none, and what is taken has been reduced to [A-Za-z0-9._-].
 *
 *	version=1/date=2026-11-29/service=S/time=0312/instance=I/boot=B/1796000000-7.bin.zst     a segment
 *	2026-11-29/0312/S/I/B/1796000000-7.bin.gz                                               one of the original's
 *	hours/2026-11-29/03/S/I/B.60.9000000.182.0     an hour: segments, bytes, worst ms or "-", missing segments
 *	dumps/ID.json                                  the manifest of a dump
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__STORED_PART	    129 /* bytes of a part, with its end */
#define D9__STORED_NAME	    (4 * D9__STORED_PART + 64)
#define D9__STORED_HOUR_S   3600
#define D9__STORED_DAY_S    86400

enum d9__stored_kind { D9__STORED_SEGMENT, D9__STORED_HOUR, D9__STORED_DUMP };

struct d9__stored_key {
	enum d9__stored_kind kind;
	char service[D9__STORED_PART], instance[D9__STORED_PART], boot_id[D9__STORED_PART];
	char id[D9__STORED_PART]; /* of a dump */
	int64_t begins_s;	  /* since 1970, of segments and hours */
	uint64_t index;		  /* of a segment */
	const char *ending;	  /* ".bin", ".bin.gz", ".bin.zst" */
	uint64_t segments, bytes, missing; /* of an hour, as it claims */
	int64_t worst_ms;		   /* below 0: not told */
};

/* Parse |key|, without the prefix of the bucket's part that is looked at; false: it tells nothing. */
bool d9__stored_key_parse(const char *key, struct d9__stored_key *out);

/*
 * How the page calls it: "S/I/B/1796000000-7.bin.zst", "S/I/B/2026-11-29T03.hour", so that one folder is one recording.
 */
void d9__stored_key_name(const struct d9__stored_key *key, char out[D9__STORED_NAME]);

/* Parse a segment's name into service, instance, boot id and time; false: it is another name. */
bool d9__stored_name_parse(const char *name, struct d9__stored_key *out);

/* Decode a part of a key, |len| bytes at |text|, as the page shows it; false: it is not valid. */
bool d9__stored_part(const char *text, size_t len, char out[D9__STORED_PART]);

/* "2026-11-29" at the beginning of |text|, in seconds since 1970; false: there is none. */
bool d9__stored_date(const char *text, int64_t *out);
