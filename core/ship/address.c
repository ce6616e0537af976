/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "ship/address.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/store_name.h"

#define REGION_MAX 63
#define PLACE      "{bucket}"

__attribute__((format(printf, 3, 4))) static int fail(char *why, size_t size, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(why, size, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

bool d9__address_is_region(const char *region)
{
	size_t len = strlen(region);

	if (len == 0 || len > REGION_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)region[i]) && region[i] != '-')
			return false;
	return true;
}

/* The name before a port. */
static size_t name_length(const char *host)
{
	if (host[0] == '[')
		return strcspn(host, "]") + (strchr(host, ']') != NULL);
	return strcspn(host, ":");
}

static bool is_ipv4(const char *name, size_t len)
{
	return len > 0 && strspn(name, "0123456789.") >= len;
}

bool d9__address_is_loopback(const char *host)
{
	static const char local[] = "localhost";
	size_t len = name_length(host), n = sizeof(local) - 1;

	if (len == 5 && !memcmp(host, "[::1]", 5))
		return true;
	if (is_ipv4(host, len))
		return !strncmp(host, "127.", 4);
	return len >= n && !memcmp(host + len - n, local, n) && (len == n || host[len - n - 1] == '.');
}

static bool is_host(const char *host)
{
	size_t len = name_length(host);
	const char *port = host + len;

	if (len == 0)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)host[i]) && !strchr("-._", host[i]) && !(host[0] == '[' && strchr("[:]", host[i])))
			return false;
	return !*port || (*port == ':' && port[1] && strlen(port) <= 6 && strspn(port + 1, "0123456789") == strlen(port + 1));
}

/* |text| with the bucket's name where it asks for it. */
static void put_host(struct d9__store_address *address, const char *text, size_t len)
{
	const char *place = memmem(text, len, PLACE, strlen(PLACE));

	if (place)
		snprintf(address->host, sizeof(address->host), "%.*s%s%.*s", (int)(place - text), text, address->bucket,
			 (int)(len - (size_t)(place - text) - strlen(PLACE)), place + strlen(PLACE));
	else
		snprintf(address->host, sizeof(address->host), "%.*s", (int)len, text);
	address->path_style = !place;
}

/* The port that the scheme has anyhow is not part of the header that is signed. */
static void drop_usual_port(struct d9__store_address *address)
{
	char *port = address->host + name_length(address->host);

	if (!strcmp(port, !strcmp(address->scheme, "https") ? ":443" : ":80"))
		*port = '\0';
}

static int parse_endpoint(const char *endpoint, bool allow_http, struct d9__store_address *out, char *why, size_t size)
{
	const char *rest = strstr(endpoint, "://");
	size_t len;

	if (!rest || (strncmp(endpoint, "https:", 6) && strncmp(endpoint, "http:", 5)))
		return fail(why, size, "endpoint '%.200s': write https://HOST[:PORT]", endpoint);
	snprintf(out->scheme, sizeof(out->scheme), "%.*s", (int)(rest - endpoint), endpoint);
	rest += 3;
	if (strpbrk(rest, "@?#"))
		return fail(why, size, "endpoint: it takes no user, password or query");
	len = strcspn(rest, "/");
	if (len > 300 || strlen(rest + len) >= sizeof(out->base))
		return fail(why, size, "endpoint '%.200s...' is too long", endpoint);
	put_host(out, rest, len);
	snprintf(out->base, sizeof(out->base), "%s", rest + len);
	while (*out->base && out->base[strlen(out->base) - 1] == '/')
		out->base[strlen(out->base) - 1] = '\0';
	if (!is_host(out->host))
		return fail(why, size, "endpoint '%.200s': that is no host; write https://HOST[:PORT]", endpoint);
	drop_usual_port(out);
	out->loopback = d9__address_is_loopback(out->host);
	if (!strcmp(out->scheme, "http") && !out->loopback && !allow_http)
		return fail(why, size,
			    "endpoint '%.200s': no TLS, so that anybody on the way reads and changes the segments; "
			    "use https, or --allow-http", endpoint);
	return 0;
}

int d9__address_parse(const struct d9__address_options *options, struct d9__store_address *out, char *why,
		      size_t why_size)
{
	*out = (struct d9__store_address) { .scheme = "https" };
	if (!d9__is_bucket_name(options->bucket))
		return fail(why, why_size, "bucket '%.100s': a name has 3 to 63 letters, digits, '.' or '-'",
			    options->bucket);
	strcpy(out->bucket, options->bucket);
	if (options->endpoint)
		return parse_endpoint(options->endpoint, options->allow_http, out, why, why_size);
	out->aws = true;
	/* A certificate for *.s3.REGION... covers no name with a dot. */
	out->path_style = options->path_style || strchr(out->bucket, '.');
	return 0;
}

bool d9__address_set_region(struct d9__store_address *address, const char *region)
{
	if (!d9__address_is_region(region))
		return false;
	if (address->aws)
		snprintf(address->host, sizeof(address->host), "%s%ss3.%s.amazonaws.com%s",
			 address->path_style ? "" : address->bucket, address->path_style ? "" : ".", region,
			 strncmp(region, "cn-", 3) ? "" : ".cn");
	return true;
}
