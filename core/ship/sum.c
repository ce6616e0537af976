/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/sum.h"

#include <errno.h>
#include <openssl/evp.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PIECE 65536

struct sums {
	EVP_MD_CTX *sha256, *md5;
};

static bool open_sums(struct sums *sums)
{
	*sums = (struct sums) { EVP_MD_CTX_new(), EVP_MD_CTX_new() };
	return sums->sha256 && sums->md5 && EVP_DigestInit_ex(sums->sha256, EVP_sha256(), NULL) &&
	       EVP_DigestInit_ex(sums->md5, EVP_md5(), NULL);
}

static bool add(struct sums *sums, const void *bytes, size_t n)
{
	return EVP_DigestUpdate(sums->sha256, bytes, n) && EVP_DigestUpdate(sums->md5, bytes, n);
}

static int close_sums(struct sums *sums, int err, struct d9__sum *out)
{
	unsigned char sha256[EVP_MAX_MD_SIZE];

	if (!err && (!EVP_DigestFinal_ex(sums->sha256, sha256, NULL) || !EVP_DigestFinal_ex(sums->md5, out->md5, NULL)))
		err = -ENOMEM;
	if (!err) {
		for (size_t i = 0; i < 32; i++)
			snprintf(out->sha256 + 2 * i, 3, "%02x", sha256[i]);
		EVP_EncodeBlock((unsigned char *)out->checksum, sha256, 32);
		EVP_EncodeBlock((unsigned char *)out->md5_base64, out->md5, 16);
	}
	EVP_MD_CTX_free(sums->sha256);
	EVP_MD_CTX_free(sums->md5);
	return err;
}

int d9__sum_of(int fd, uint64_t first, uint64_t size, struct d9__sum *sum)
{
	static char piece[PIECE];
	struct sums sums;
	int err = open_sums(&sums) ? 0 : -ENOMEM;

	while (!err && size) {
		ssize_t n = pread(fd, piece, size < PIECE ? (size_t)size : PIECE, (off_t)first);

		if (n <= 0)
			err = n < 0 ? -errno : -ENODATA;
		else if (!add(&sums, piece, (size_t)n))
			err = -ENOMEM;
		else
			first += (uint64_t)n, size -= (uint64_t)n;
	}
	return close_sums(&sums, err, sum);
}

int d9__sum_of_text(const char *text, struct d9__sum *sum)
{
	struct sums sums;
	int err = open_sums(&sums) && add(&sums, text, strlen(text)) ? 0 : -ENOMEM;

	return close_sums(&sums, err, sum);
}
