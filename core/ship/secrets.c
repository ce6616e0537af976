/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/secrets.h"

#include <openssl/crypto.h>
#include <string.h>
#include <sys/mman.h>

#define HIDDEN_MIN 4 /* shorter ones would hide ordinary words */

struct d9__secrets *d9__secrets_new(void)
{
	struct d9__secrets *secrets = mmap(NULL, sizeof(*secrets), PROT_READ | PROT_WRITE,
					   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (secrets == MAP_FAILED)
		return NULL;
	/* Where the limit of locked memory is 0 it may be swapped out: still better than no upload. */
	mlock(secrets, sizeof(*secrets));
	madvise(secrets, sizeof(*secrets), MADV_DONTDUMP);
	madvise(secrets, sizeof(*secrets), MADV_WIPEONFORK);
	return secrets;
}

void d9__secrets_wipe(struct d9__secrets *secrets)
{
	OPENSSL_cleanse(secrets, sizeof(*secrets));
}

/* True if |text| can be put into a header as it is. */
static bool fits(const char *text, size_t size)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x21 || (unsigned char)text[i] > 0x7e)
			return false;
	return len < size;
}

bool d9__secrets_set(struct d9__secrets *secrets, const char *id, const char *secret, const char *token,
		     int64_t expires)
{
	if (!*id || !*secret || !fits(id, sizeof(secrets->id)) || !fits(secret, sizeof(secrets->secret)) ||
	    !fits(token, sizeof(secrets->token)))
		return false;
	strcpy(secrets->id, id);
	strcpy(secrets->secret, secret);
	strcpy(secrets->token, token);
	secrets->expires = expires;
	return true;
}

static void hide(char *text, const char *what)
{
	size_t len = strlen(what);
	char *at;

	if (len < HIDDEN_MIN)
		return;
	while ((at = strstr(text, what))) {
		memcpy(at, "***", 3);
		memmove(at + 3, at + len, strlen(at + len) + 1);
	}
	/* The text may have been cut within it. */
	for (size_t n = len - 1, all = strlen(text); n >= HIDDEN_MIN; n--)
		if (n <= all && !memcmp(text + all - n, what, n)) {
			strcpy(text + all - n, "***");
			break;
		}
}

void d9__secrets_hide(const struct d9__secrets *secrets, char *text)
{
	hide(text, secrets->secret);
	hide(text, secrets->token);
	hide(text, secrets->id);
}

void d9__secrets_free(struct d9__secrets *secrets)
{
	if (!secrets)
		return;
	d9__secrets_wipe(secrets);
	munmap(secrets, sizeof(*secrets));
}
