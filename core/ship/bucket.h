/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bucket: one bucket of an object store, reached through a child process, PKGLIBEXECDIR/dial9-store.
 *
 * The child alone has credentials, a TLS library and an HTTP client; it opens no file of ours: what it
 * sends and what it fetches are descriptors that it is given.  It may crash, hang or be absent: each
 * request then gets an answer of class RETRY, and the next request starts a child again.
 *
 * Requests are asynchronous.  Each has a token of the caller's, and exactly one answer from
 * d9__bucket_wait(), in no order.  Within the child, once each and without delay: expired credentials
 * are refreshed, a skewed clock is corrected by the answer's Date, the region is learned from an answer
 * that names it (another host never is), a header that the store names as unknown (checksum,
 * encryption, If-None-Match) is left out.  The child never waits and tries again: when to repeat after
 * RETRY, and the breaker, are the caller's business.
 *
 * Use it from one thread.  Names begin with d9__bucket_: read/store.h has d9__store_.
 *
 * The protocol.  A SOCK_SEQPACKET pair, the child's end is its stdin; one JSON object a datagram of at
 * most D9__BUCKET_MESSAGE_MAX bytes; at most one descriptor with it.  Parent to child: first
 *   {"op":"start","bucket":B,...}          the options below; the child says {"ready":true,"url":U},
 *                                          or {"error":TEXT} and ends
 * and then, each with "token":N and "key":K (list: "prefix"),
 *   {"op":"put","size":N,"type":T,"meta":{D9__BUCKET_META NAME:VALUE},"new":BOOL}          with the body's descriptor
 *   {"op":"get","first":N,"size":N}        size 0: all from first on       with the file to write to
 *   {"op":"head"}
 *   {"op":"list","prefix":P,"delimiter":D,"after":K,"continuation":C,"max":N}
 *   {"op":"presign","seconds":N}
 *   {"op":"cancel"}                        the request of that token is answered as RETRY, Cancelled
 * Child to parent: {"token":N,"class":NAME,"status":N,"code":C,"message":M,"request":ID,"etag":E,
 * "retry_after":N,"bytes":N,"modified":N,"url":U,"note":TEXT}; a list's keys come with it in a
 * descriptor (memfd): {"keys":[[KEY,SIZE,MODIFIED]...],"prefixes":[...],"more":CONTINUATION}.
 * Either side ends when the other has closed its end.
 */

#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define D9__BUCKET_MESSAGE_MAX     65536
#define D9__BUCKET_OUTSTANDING_MAX 64   /* requests without answer at a time */
#define D9__BUCKET_KEY_MAX         1024 /* bytes of a key, as stores have it */
#define D9__BUCKET_META            "x-amz-meta-"
#define D9__BUCKET_META_MAX        2048 /* bytes of all names and values of an object */

struct d9__bucket;

/* All strings borrowed until d9__bucket_start() returns. */
struct d9__bucket_options {
	const char *program;  /* path of dial9-store; NULL: the one that was built or installed with us */
	const char *bucket;   /* name */
	const char *endpoint; /* https://HOST[:PORT], "{bucket}" in HOST puts the name there; NULL:
				 AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, AWS itself by the region */
	const char *region;   /* NULL: environment, profile, then asked of the bucket */
	const char *profile;  /* NULL: AWS_PROFILE, "default" */
	const char *ca;       /* PEM file; NULL: AWS_CA_BUNDLE, the system's */
	const char *sse;      /* "AES256", "aws:kms"; NULL: as the bucket has it */
	const char *sse_key;  /* of aws:kms; may be NULL */
	uint64_t max_rate;    /* bytes per second of all transfers; 0: no limit */
	uint64_t single_max;  /* a larger body goes up in parts of 16 MiB; 0: 256 MiB */
	unsigned parallel;    /* transfers at once; 0: 2 */
	unsigned stall;       /* seconds without progress that end a transfer; 0: 30 */
	bool path_style;      /* bucket in the path; so anyhow with an endpoint, and for names with dots */
	bool allow_http;      /* plain http to hosts other than loopback */
	bool md5;             /* send Content-MD5 */
};

/* The classes of answers by what the caller has to do; shipping.md 2.3. */
enum d9__bucket_class {
	D9__BUCKET_DONE,     /* stored, confirmed by ETag or checksum; fetched whole; listed */
	D9__BUCKET_THERE,    /* 412: only_new was asked for, and the object is there */
	D9__BUCKET_RETRY,    /* 5xx, 429, 408, connection, time limit, cut answer, child ended */
	D9__BUCKET_UNUSABLE, /* the store as a whole: credentials, policy, no such bucket,
				certificate */
	D9__BUCKET_REFUSED,  /* this object alone: other 4xx */
	D9__BUCKET_ABSENT,   /* get, head: 404 NoSuchKey */
};

struct d9__bucket_pair {
	const char *name; /* without x-amz-meta-; [a-z0-9_-] */
	const char *value; /* printable ASCII */
};

struct d9__bucket_put {
	const char *key;  /* plain, not escaped, no leading "/" */
	const char *type; /* Content-Type */
	const struct d9__bucket_pair *meta;
	size_t n_meta;
	uint64_t size; /* bytes of the descriptor, from its beginning */
	bool only_new; /* If-None-Match: *, where the store can */
};

struct d9__bucket_list {
	const char *prefix;       /* NULL: all */
	const char *delimiter;    /* NULL: none */
	const char *start_after;  /* NULL: from the beginning; keys behind this one */
	const char *continuation; /* NULL, or |more| of the page before */
	unsigned max_keys;        /* 0: 1000 */
};

struct d9__bucket_key {
	const char *key;
	uint64_t size;
	int64_t modified; /* epoch seconds; 0: unknown */
};

/* Borrowed until the next d9__bucket_wait() or the free. */
struct d9__bucket_answer {
	uint64_t token;
	enum d9__bucket_class class;
	unsigned status;      /* HTTP; 0: none came */
	unsigned retry_after; /* seconds, at most 300; 0: not said */
	uint64_t bytes;       /* sent, fetched, or the object's size (head) */
	int64_t modified;     /* head: epoch seconds; 0: unknown */
	const char *code;     /* S3's ("NoSuchBucket"), or ours ("Timeout"); never NULL */
	const char *message; /* one printable line, at most 200 bytes of it a store's; never NULL */
	const char *request;  /* the store's request id; never NULL */
	const char *etag;     /* without quotes; never NULL */
	const char *note;     /* to be told once: a header was left out; "" otherwise */
	const char *url;      /* presign; "" otherwise */

	const struct d9__bucket_key *keys; /* list */
	size_t n_keys;
	const char *const *prefixes; /* list with delimiter: common prefixes */
	size_t n_prefixes;
	const char *more; /* list: continuation of the next page; NULL: this was the last */
};

/*
 * Start the child and hand it |options|.  Credentials are looked for with the first request, not here.
 * Where the environment has some, this process becomes one that no other of its user may look into
 * (PR_SET_DUMPABLE).
 * 0 with |*out|; -EINVAL with one line in |why|: an option or an address that cannot be; -ENOENT: the
 * program is not there (built --without-store); -EPROTO: it ended or does not speak the protocol;
 * -ENOMEM, or an error of starting a process.  |why| is never empty after an error.
 */
int d9__bucket_start(const struct d9__bucket_options *options, struct d9__bucket **out, char *why,
		     size_t why_size);

/* Return the address that requests go to, as it is shown: "https://HOST/BUCKET". */
const char *d9__bucket_url(const struct d9__bucket *bucket);

/*
 * Ask.  |fd| stays the caller's, and may be closed at once.  0; -EAGAIN: D9__BUCKET_OUTSTANDING_MAX are
 * under way; -EINVAL: a key or metadata that no store takes; -ENOMEM.  A child that cannot be started
 * is no error here: the answer says it.
 */
int d9__bucket_put(struct d9__bucket *bucket, uint64_t token, const struct d9__bucket_put *put, int fd);
/* Like the function above, but with a body from memory: marker, manifest.  put->size bytes at |data|. */
int d9__bucket_put_bytes(struct d9__bucket *bucket, uint64_t token, const struct d9__bucket_put *put,
			 const void *data);
/* |size| bytes from |first| on (0: all that follow) into |fd|, from its beginning. */
int d9__bucket_get(struct d9__bucket *bucket, uint64_t token, const char *key, uint64_t first,
		   uint64_t size, int fd);
int d9__bucket_head(struct d9__bucket *bucket, uint64_t token, const char *key);
int d9__bucket_list(struct d9__bucket *bucket, uint64_t token, const struct d9__bucket_list *list);
/* Ask for a URL by which |key| can be fetched for |seconds| (1 to 604800) without credentials. */
int d9__bucket_presign(struct d9__bucket *bucket, uint64_t token, const char *key, unsigned seconds);
/* Answered as RETRY with code "Cancelled", if it was under way. */
int d9__bucket_cancel(struct d9__bucket *bucket, uint64_t token);

/*
 * Get the next answer: 1 with |*answer|, 0: none within |timeout_ms| (-1: no limit; not with
 * nothing under way), -ENOMEM. It does not fail if the child does.
 */
int d9__bucket_wait(struct d9__bucket *bucket, int timeout_ms,
		    const struct d9__bucket_answer **answer);

/* Readable when d9__bucket_wait() has something; -1: no child at present.  Ask again after each call
 * of a function here: it changes with the child. */
int d9__bucket_fd(const struct d9__bucket *bucket);

/* Requests without answer. */
size_t d9__bucket_outstanding(const struct d9__bucket *bucket);

/* End the child, also in the middle of a transfer. */
void d9__bucket_free(struct d9__bucket *bucket);
