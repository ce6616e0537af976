/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Access: a request must name this very server as its host, so that no name that resolves to
 * 127.0.0.1 opens it to a web page, and its path must begin with the token that was printed at the
 * start. What it gets is from tables: the viewer's files, the listing, what is known of its
 * segments; no path is made of it.
 */
#include "config.h"

#include "serve/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <event2/listener.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analyze/budget.h"
#include "serve/aggregate.h"
#include "serve/archive.h"
#include "serve/archive_json.h"
#include "serve/assets.h"
#include "serve/guard.h"
#include "serve/listing.h"
#include "serve/local_source.h"
#include "serve/reply.h"
#include "serve/report_job.h"
#include "serve/upload.h"
#include "text/json.h"

#define TOKEN_BYTES 16
#define HEADERS_MAX (64 << 10) /* a thousand segments can be asked for in a line */
#define IDLE_S	    60
#define LOOPBACK    "127.0.0.1"
#define SCOPE_MAX   256 /* recordings that are named at once */
#define NAMES_MAX   1000 /* segments, likewise */
#define BAD_GATEWAY 502
#define REPORT_BYTES_MAX ((uint64_t)1 << 30) /* that are fetched for one */

/* The limit of the memory for sums of segments and names, besides the budget's. */
#define ARCHIVE_BYTES ((uint64_t)80 << 20)

struct d9__server {
	struct event_base *base;
	struct evhttp *http;
	struct event *signals[2];
	struct d9__assets assets;
	struct d9__segment_source source;
	const char *name; /* of the trace or bucket */
	struct d9__listing listing;
	struct d9__archive *archive;
	struct d9__report_job *report;
	struct d9__upload *upload;
	struct d9__guard *guard;
	const char *address; /* that we listen on */
	uint16_t port;
	bool live;
	char token[2 * TOKEN_BYTES + 1];
	char url[96 + 2 * TOKEN_BYTES];
};

/* The number |key| of |query|. */
static double number_in(const struct evkeyvalq *query, const char *key, double otherwise)
{
	const char *text = evhttp_find_header(query, key);
	char *end = NULL;
	double n = text ? strtod(text, &end) : otherwise;

	return !text || end == text || *end || n != n ? otherwise : n;
}

/* ---- what there is ---- */

static void put_segment(struct d9__json *json, const struct d9__listed *item)
{
	/* Escape all but letters, so that any name of a file is a valid path of a URL;
	 * slashes too. */
	char *escaped = evhttp_encode_uri(item->name), *url;

	if (escaped && asprintf(&url, "segment/%s", escaped) >= 0) {
		d9__json_open(json, NULL, '{');
		d9__json_string(json, "name", item->name);
		d9__json_string(json, "url", url);
		d9__json_u64(json, "bytes", item->bytes);
		d9__json_u64(json, "modified_ms", (uint64_t)(item->modified_ns / 1000000));
		d9__json_bool(json, "active", item->active);
		d9__json_close(json, '}');
		free(url);
	}
	free(escaped);
}

/* The parameters of a query. */
struct scope {
	struct d9__source_scope of; /* borrows from here, and from the query */
	double from2_ms, to2_ms;    /* another range of the same; 0: none */
	const char *processes[SCOPE_MAX], *names[NAMES_MAX];
};

static void take_scope(struct scope *scope, const struct evkeyvalq *query)
{
	static const char segment[] = "segment/";

	scope->of = (struct d9__source_scope) { .processes = scope->processes, .names = scope->names,
						.dump = evhttp_find_header(query, "dump"), .from_ms = number_in(query, "from_ms", 0),
						.to_ms = number_in(query, "to_ms", 0) };
	scope->from2_ms = number_in(query, "from2_ms", 0);
	scope->to2_ms = number_in(query, "to2_ms", 0);
	for (const struct evkeyval *item = query->tqh_first; item; item = item->next.tqe_next)
		if (!strcmp(item->key, "process") && scope->of.n_processes < SCOPE_MAX)
			scope->processes[scope->of.n_processes++] = item->value;
		else if (!strcmp(item->key, "trace") && !strncmp(item->value, segment, strlen(segment)) && scope->of.n_names < NAMES_MAX)
			scope->names[scope->of.n_names++] = item->value + strlen(segment);
}

static bool is_among(const char *text, const char *const *texts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(text, texts[i]))
			return true;
	return false;
}

static bool reaches_into(const struct d9__source_facts *facts, double from_ms, double to_ms)
{
	return (double)facts->from_ms < to_ms && (double)facts->to_ms >= from_ms;
}

/* True if |item| of a place far away is one of the segments that |scope| asks for. */
static bool is_chosen(const struct d9__server *server, const struct scope *asked, const struct d9__listed *item)
{
	const struct d9__source_facts *facts = item->facts;
	const struct d9__source_scope *scope = &asked->of;

	if (facts->segments)
		return false;
	if (scope->dump)
		return server->source.is_of_dump(server->source.context, scope->dump, item->name);
	if (scope->n_names)
		return is_among(item->name, scope->names, scope->n_names);
	return is_among(facts->process, scope->processes, scope->n_processes) &&
	       (reaches_into(facts, scope->from_ms, scope->to_ms) || reaches_into(facts, asked->from2_ms, asked->to2_ms));
}

/* All segments, or of a place far away those of |scope|. */
static void put_listing(struct d9__json *json, const struct d9__server *server, const struct scope *scope)
{
	const struct d9__listing *listing = &server->listing;

	d9__json_open(json, NULL, '{');
	d9__json_string(json, "name", server->name);
	d9__json_bool(json, "live", server->live);
	d9__json_bool(json, "left_out", listing->left_out);
	/* Then a report is about some, too. */
	if (scope)
		d9__json_bool(json, "far", true);
	d9__json_open(json, "segments", '[');
	for (size_t i = 0; i < listing->n; i++)
		if (!scope || is_chosen(server, scope, &listing->items[i]))
			put_segment(json, &listing->items[i]);
	d9__json_close(json, ']');
	d9__json_close(json, '}');
}

static void send_listing(const struct d9__server *server, struct evhttp_request *request, const struct scope *scope)
{
	char *text = NULL;
	size_t len = 0;
	struct d9__json json = { .out = open_memstream(&text, &len) };

	if (json.out) {
		put_listing(&json, server, scope);
		if (fclose(json.out)) {
			free(text);
			text = NULL;
		}
	}
	d9__reply_json(request, text, len);
}

/*
 * Open the listed segment |name| and get its size now.  -ENOENT if it is not listed, or an error of
 * open(2).
 */
static int open_listed(const struct d9__server *server, const char *name, uint64_t *bytes)
{
	struct stat st;
	int fd = d9__listing_find(&server->listing, name)
			 ? server->source.open(server->source.context, name)
			 : -ENOENT;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		close(fd);
		return -ENOENT;
	}
	*bytes = (uint64_t)st.st_size;
	return fd;
}

/*
 * Send a segment from byte |from| on, because a client that follows a growing one has its beginning
 * already.
 */
static void send_segment(struct d9__server *server, struct evhttp_request *request,
			 const char *escaped, double from)
{
	size_t len = 0;
	char *name = evhttp_uridecode(escaped, 0, &len);
	struct evbuffer *body = evbuffer_new();
	uint64_t bytes = 0, skip = 0;
	int fd = -ENOMEM;

	if (name && body)
		fd = strlen(name) == len ? open_listed(server, name, &bytes) : -ENOENT;
	/*
	 * Read the file as the client takes it: libevent would map it otherwise, and a process that
	 * cuts the file would end the server with SIGBUS.
	 */
	if (body)
		evbuffer_set_flags(body, EVBUFFER_FLAG_DRAINS_TO_FD);
	if (from > 0)
		skip = from < (double)bytes ? (uint64_t)from : bytes;
	bytes -= skip;
	if (fd >= 0 &&
	    (!bytes || !evbuffer_add_file(body, fd, (ev_off_t)skip, (ev_off_t)bytes))) {
		if (!bytes)
			close(fd);
		d9__reply(request, HTTP_OK, "application/octet-stream", body);
	} else {
		if (fd >= 0)
			close(fd);
		d9__reply_text(request, HTTP_NOTFOUND, "no such segment");
	}
	if (body)
		evbuffer_free(body);
	free(name);
}

/* ---- the report ---- */

static void send_report(void *context, struct d9__child_answer *answer)
{
	struct evhttp_request *request = context;

	/* To a client that has gone meanwhile, libevent sends nothing. */
	if (answer->out)
		d9__reply_bytes(request, HTTP_OK, "application/json", answer->out, answer->len);
	else
		d9__reply_text(request, 422, answer->why);
}

/* The subject of a report. */
struct subject {
	char **paths; /* NULL-terminated; owned, and each */
	size_t n;
	uint64_t identity;
};

static void release_subject(struct subject *subject)
{
	for (size_t i = 0; i < subject->n; i++)
		free(subject->paths[i]);
	free(subject->paths);
}

static int add_path(struct subject *subject, const struct d9__server *server, const char *name,
		    uint64_t identity)
{
	subject->paths[subject->n] = server->source.path(server->source.context, name);
	if (!subject->paths[subject->n])
		return -ENOMEM;
	subject->n++;
	subject->identity = subject->identity * 31 + identity;
	return 0;
}

/* The segments that |query| names by "trace=segment/NAME". */
static int add_chosen(struct subject *subject, const struct d9__server *server,
		      const struct evkeyvalq *query)
{
	const struct evkeyval *item;
	const struct d9__listed *listed;
	int err = 0;

	for (item = query->tqh_first; item && !err; item = item->next.tqe_next) {
		if (strcmp(item->key, "trace") ||
		    strncmp(item->value, "segment/", strlen("segment/")))
			continue;
		listed = d9__listing_find(&server->listing, item->value + strlen("segment/"));
		err = listed && subject->n < server->listing.n
			      ? add_path(subject, server, listed->name, listed->identity)
			      : -ENOENT;
	}
	return err;
}

/* Everything: the directory, or where something in it leads elsewhere, each segment. */
static int add_everything(struct subject *subject, const struct d9__server *server)
{
	const struct d9__listing *listing = &server->listing;
	int err = 0;

	if (server->source.whole || (!listing->left_out && listing->n > 1))
		return add_path(subject, server, "", listing->identity);
	for (size_t i = 0; i < listing->n && !err; i++)
		err = add_path(subject, server, listing->items[i].name, listing->items[i].identity);
	return err;
}

/* Add the segments of a distant store that |scope| asks for and that were fetched. */
static int add_scope(struct subject *subject, const struct d9__server *server, const struct scope *scope)
{
	int err = 0;

	for (size_t i = 0; i < server->listing.n && !err; i++)
		if (is_chosen(server, scope, &server->listing.items[i]))
			err = add_path(subject, server, server->listing.items[i].name, server->listing.items[i].identity);
	return err || subject->n ? err : -ENOENT;
}

/* |scope|: of a place far away; NULL: |query| names some, or means all. */
static void ask_report(struct d9__server *server, struct evhttp_request *request,
		       const struct evkeyvalq *query, const struct scope *scope)
{
	struct subject subject = { .paths = calloc(server->listing.n + 2, sizeof(*subject.paths)) };
	int err = !subject.paths ? -ENOMEM : scope ? add_scope(&subject, server, scope) : add_chosen(&subject, server, query);

	if (!err && !subject.n)
		err = add_everything(&subject, server);
	if (!err)
		err = d9__report_job_ask(server->report, subject.paths, subject.identity,
					 send_report, request);
	if (err)
		d9__reply_text(request, err == -ENOENT ? HTTP_NOTFOUND : HTTP_INTERNAL,
			       err == -ENOENT ? "no such segment" : strerror(-err));
	release_subject(&subject);
}

/* ---- what is far away ---- */

/* A request that waits for the source. */
struct errand {
	struct d9__server *server;
	struct evhttp_request *request;
	struct evkeyvalq query;
	struct scope scope;
	size_t fetching; /* and one until all are asked for */
	char why[400];	 /* the fault; "": none */
	bool report, again; /* the other range is looked for */
};

static void end_errand(struct errand *errand)
{
	evhttp_clear_headers(&errand->query);
	free(errand);
}

static void finish_errand(struct errand *errand)
{
	if (*errand->why)
		d9__reply_text(errand->request, BAD_GATEWAY, errand->why);
	else if (errand->report)
		ask_report(errand->server, errand->request, &errand->query, &errand->scope);
	else
		send_listing(errand->server, errand->request, &errand->scope);
	end_errand(errand);
}

static void on_fetched(void *context, const char *why)
{
	struct errand *errand = context;

	if (why)
		snprintf(errand->why, sizeof(errand->why), "%s", why);
	if (!--errand->fetching)
		finish_errand(errand);
}

/* A report reads all of them. */
static void fetch_all(struct errand *errand)
{
	const struct d9__server *server = errand->server;
	const struct d9__listing *listing = &server->listing;
	uint64_t bytes = 0;

	errand->fetching = 1;
	for (size_t i = 0; errand->report && i < listing->n; i++) {
		if (!is_chosen(server, &errand->scope, &listing->items[i]))
			continue;
		bytes += listing->items[i].bytes;
		if (bytes > REPORT_BYTES_MAX) {
			snprintf(errand->why, sizeof(errand->why), "there is no report: it would be about more than 1 GiB");
			break;
		}
		errand->fetching++;
		server->source.fetch(server->source.context, listing->items[i].name, on_fetched, errand);
	}
	on_fetched(errand, NULL);
}

static void on_looked(void *context, const char *why);

/* For the other range. */
static void look_again(struct errand *errand)
{
	const struct d9__segment_source *source = &errand->server->source;
	struct d9__source_scope other = errand->scope.of;

	other.from_ms = errand->scope.from2_ms;
	other.to_ms = errand->scope.to2_ms;
	errand->again = true;
	source->look(source->context, &other, on_looked, errand);
}

static void on_looked(void *context, const char *why)
{
	struct errand *errand = context;
	int err = d9__listing_refresh(&errand->server->listing, &errand->server->source);

	if (err || why) {
		d9__reply_text(errand->request, err ? HTTP_INTERNAL : BAD_GATEWAY, err ? strerror(-err) : why);
		end_errand(errand);
		return;
	}
	if (errand->scope.to2_ms > 0 && !errand->again)
		look_again(errand);
	else
		fetch_all(errand);
}

/* Answer "segments" or "report" once the source knows the scope. */
static void look_first(struct d9__server *server, struct evhttp_request *request, bool report)
{
	const char *uri = evhttp_request_get_uri(request), *asked = strchr(uri, '?');
	struct errand *errand = calloc(1, sizeof(*errand));

	if (!errand) {
		d9__reply_text(request, HTTP_INTERNAL, strerror(ENOMEM));
		return;
	}
	*errand = (struct errand) { .server = server, .request = request, .report = report };
	evhttp_parse_query_str(asked ? asked + 1 : "", &errand->query);
	take_scope(&errand->scope, &errand->query);
	errand->scope.of.segments = true;
	server->source.look(server->source.context, &errand->scope.of, on_looked, errand);
}

/* A request for one segment's bytes. */
struct delivery {
	struct d9__server *server;
	struct evhttp_request *request;
	char *escaped; /* owned */
	double from;
};

static void deliver(void *context, const char *why)
{
	struct delivery *delivery = context;

	if (why)
		d9__reply_text(delivery->request, BAD_GATEWAY, why);
	else
		send_segment(delivery->server, delivery->request, delivery->escaped, delivery->from);
	free(delivery->escaped);
	free(delivery);
}

static void fetch_first(struct d9__server *server, struct evhttp_request *request, const char *escaped, double from)
{
	struct delivery *delivery = calloc(1, sizeof(*delivery));
	char *name = evhttp_uridecode(escaped, 0, NULL);

	if (!name || !delivery || !d9__listing_find(&server->listing, name) || !(delivery->escaped = strdup(escaped))) {
		free(delivery);
		free(name);
		d9__reply_text(request, HTTP_NOTFOUND, "no such segment");
		return;
	}
	delivery->server = server;
	delivery->request = request;
	delivery->from = from;
	server->source.fetch(server->source.context, name, deliver, delivery);
	free(name);
}

/* ---- many segments ---- */

static void send_map(struct d9__server *server, struct evhttp_request *request,
		     const struct evkeyvalq *query)
{
	double since = number_in(query, "since", 0);
	int err;
	size_t len = 0;
	char *json = NULL;
	struct d9__source_scope scope = { .from_ms = number_in(query, "from_ms", 0), .to_ms = number_in(query, "to_ms", 0) };

	if (server->source.look)
		server->source.look(server->source.context, &scope, NULL, NULL);
	err = d9__archive_sync(server->archive, &server->listing);
	if (!err)
		json = d9__archive_map(server->archive,
				       since > 0 && since < 1e15 ? (uint64_t)since : 0, &len);
	d9__reply_json(request, json, len);
}

/* "process=NAME", "from_ms=", "to_ms=". */
static void send_sums(struct d9__server *server, struct evhttp_request *request,
		      const struct evkeyvalq *query,
		      char *(*make)(struct d9__archive *archive,
				    const struct d9__archive_scope *scope, size_t *len))
{
	const char *processes[SCOPE_MAX];
	struct d9__archive_scope scope = { .processes = processes,
					   .from_ms = number_in(query, "from_ms", -1e18),
					   .to_ms = number_in(query, "to_ms", 1e18) };
	int err = d9__archive_sync(server->archive, &server->listing);
	size_t len = 0;
	char *json;

	for (const struct evkeyval *item = query->tqh_first; item && scope.n_processes < SCOPE_MAX;
	     item = item->next.tqe_next)
		if (!strcmp(item->key, "process"))
			processes[scope.n_processes++] = item->value;
	if (!err && server->source.fetch)
		d9__archive_want(server->archive, &scope);
	json = err ? NULL : make(server->archive, &scope, &len);
	d9__reply_json(request, json, len);
}

/* ---- who may have it ---- */

/*
 * True if |host| is an address in digits.  Such a Host header means this machine, while another
 * site's name could have been made to lead here (DNS rebinding).
 */
static bool is_digits(const struct d9__server *server, const char *host)
{
	char name[64], port[16];
	const char *colon = strrchr(host, ':');
	size_t len = colon ? (size_t)(colon - host) : 0;
	struct in6_addr address;

	snprintf(port, sizeof(port), ":%u", server->port);
	if (!colon || strcmp(colon, port) || len >= sizeof(name))
		return false;
	snprintf(name, sizeof(name), "%.*s", (int)len, host);
	if (name[0] != '[')
		return inet_pton(AF_INET, name, &address) == 1;
	name[strcspn(name, "]")] = '\0';
	return inet_pton(AF_INET6, name + 1, &address) == 1;
}

static bool is_own_host(const struct d9__server *server, struct evhttp_request *request)
{
	const char *host = evhttp_find_header(evhttp_request_get_input_headers(request), "Host");
	static const char *const names[] = { LOOPBACK, "localhost" };
	char own[64];

	for (size_t i = 0; host && i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(own, sizeof(own), "%s:%u", names[i], server->port);
		if (!strcmp(host, own))
			return true;
	}
	return host && strcmp(server->address, LOOPBACK) && is_digits(server, host);
}

/* A browser says so when it asks for a page of another site. */
static bool is_foreign(struct evhttp_request *request)
{
	const char *site =
		evhttp_find_header(evhttp_request_get_input_headers(request), "Sec-Fetch-Site");

	return site && strcmp(site, "same-origin") && strcmp(site, "none");
}

static bool is_post(struct evhttp_request *request)
{
	return evhttp_request_get_command(request) == EVHTTP_REQ_POST;
}

/* True if a page of another site sends this, which every browser says; |request| is for our host.
 */
static bool is_sent_by_another(struct evhttp_request *request)
{
	struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
	const char *origin = evhttp_find_header(headers, "Origin"),
		   *host = evhttp_find_header(headers, "Host");
	static const char scheme[] = "http://";

	return is_post(request) && origin &&
	       (strncmp(origin, scheme, strlen(scheme)) || strcmp(origin + strlen(scheme), host));
}

/*
 * True if a browser opens the page by navigation, as from the file of `--open`: the page that links
 * here cannot read it.
 */
static bool is_visit(struct evhttp_request *request, const char *path)
{
	struct evkeyvalq *headers = evhttp_request_get_input_headers(request);
	const char *mode = evhttp_find_header(headers, "Sec-Fetch-Mode"), *what = evhttp_find_header(headers, "Sec-Fetch-Dest");

	return !*path && mode && what && !strcmp(mode, "navigate") && !strcmp(what, "document");
}

/* Return the part of |uri| behind "/TOKEN/", up to the query, in new memory; NULL: another token, or out of
 * memory. */
static char *path_behind_token(const struct d9__server *server, const char *uri)
{
	const size_t len = sizeof(server->token) - 1;
	unsigned differs = 0;

	if (strlen(uri) < len + 2 || uri[0] != '/' || uri[len + 1] != '/')
		return NULL;
	/* In the same time for every wrong one. */
	for (size_t i = 0; i < len; i++)
		differs |= (unsigned)(uri[i + 1] ^ server->token[i]);
	uri += len + 2;
	return differs ? NULL : strndup(uri, strcspn(uri, "?#"));
}

/*
 * Return the page at "/TOKEN/": the map for many recordings, unless the query chose some of them or
 * a live trace is followed.
 */
static const char *first_page(const struct d9__server *server, const struct evkeyvalq *query)
{
	return !server->live && (server->source.look || d9__listing_is_many(&server->listing)) &&
			       !evhttp_find_header(query, "trace") && !evhttp_find_header(query, "process") &&
			       !evhttp_find_header(query, "dump")
		       ? "viewer/browse.html"
		       : "viewer/index.html";
}

/* About the segments that there are now. */
static void answer_api(struct d9__server *server, struct evhttp_request *request, const char *path,
		       const struct evkeyvalq *query)
{
	int err = d9__listing_refresh(&server->listing, &server->source);

	if (err)
		d9__reply_text(request, HTTP_INTERNAL, strerror(-err));
	else if (server->source.look && (!strcmp(path, "segments") || !strcmp(path, "report")))
		look_first(server, request, !strcmp(path, "report"));
	else if (!strcmp(path, "segments"))
		send_listing(server, request, NULL);
	else if (!strcmp(path, "report"))
		ask_report(server, request, query, NULL);
	else if (!strcmp(path, "page"))
		d9__reply_page(request, &server->assets);
	else if (!strcmp(path, "map"))
		send_map(server, request, query);
	else if (!strcmp(path, "callbacks"))
		send_sums(server, request, query, d9__archive_callbacks);
	else if (!strcmp(path, "spans"))
		send_sums(server, request, query, d9__archive_spans);
	else if (!strcmp(path, "stacks"))
		send_sums(server, request, query, d9__archive_stacks);
	else
		d9__reply_text(request, HTTP_NOTFOUND, "nothing here");
}

/* Answer |request|, which had the right token. */
static void dispatch(struct d9__server *server, struct evhttp_request *request, const char *path,
		     const struct evkeyvalq *query)
{
	const struct d9__asset *asset;

	d9__guard_admit(server->guard, request);
	if (is_post(request)) {
		if (!strcmp(path, "api/report"))
			d9__upload_take(server->upload, request, query);
		else
			d9__reply_text(request, HTTP_BADMETHOD, "nothing is sent here");
		return;
	}
	if (!*path)
		path = first_page(server, query);
	else if (!strcmp(path, "map"))
		path = "viewer/browse.html";
	else if (!strcmp(path, "view"))
		path = "viewer/index.html";
	asset = d9__assets_find(&server->assets, path);
	if (asset)
		d9__reply_kept(request, asset->type, asset->data, asset->len);
	else if (!strncmp(path, "api/", strlen("api/")))
		answer_api(server, request, path + strlen("api/"), query);
	else if (!strncmp(path, "segment/", strlen("segment/")) && server->source.fetch)
		fetch_first(server, request, path + strlen("segment/"), number_in(query, "from", 0));
	else if (!strncmp(path, "segment/", strlen("segment/")))
		send_segment(server, request, path + strlen("segment/"),
			     number_in(query, "from", 0));
	else
		d9__reply_text(request, HTTP_NOTFOUND, "nothing here");
}

static void on_request(struct evhttp_request *request, void *context)
{
	struct d9__server *server = context;
	const char *uri = evhttp_request_get_uri(request), *asked;
	struct evkeyvalq query = { 0 };
	char *path;

	if (!is_own_host(server, request)) {
		d9__reply_text(request, 403, "this server answers to its own address only");
		return;
	}
	path = uri ? path_behind_token(server, uri) : NULL;
	if (!path)
		d9__reply_text(request, 403,
			       "open the URL that dial9 serve printed: it holds a token");
	else if ((is_foreign(request) && !is_visit(request, path)) || is_sent_by_another(request))
		d9__reply_text(request, 403, "other sites may not read this");
	else if ((asked = strchr(uri, '?')) && evhttp_parse_query_str(asked + 1, &query))
		d9__reply_text(request, HTTP_BADREQUEST, "no query of ours");
	else
		dispatch(server, request, path, &query);
	evhttp_clear_headers(&query);
	free(path);
}

/* ---- life ---- */

static void on_signal(evutil_socket_t signal_number, short what, void *context)
{
	(void)signal_number;
	(void)what;
	event_base_loopbreak(((struct d9__server *)context)->base);
}

static void on_resume(evutil_socket_t fd, short what, void *listener)
{
	(void)fd;
	(void)what;
	evconnlistener_enable(listener);
}

/* No descriptor is free for another client: stop accepting until one may have left. */
static void on_accept_error(struct evconnlistener *listener, void *http)
{
	static const struct timeval pause = { .tv_usec = 100000 };

	(void)http;
	if (!event_base_once(evconnlistener_get_base(listener), -1, EV_TIMEOUT, on_resume, listener,
			     &pause))
		evconnlistener_disable(listener);
}

static int make_token(struct d9__server *server)
{
	uint8_t bytes[TOKEN_BYTES];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(server->token + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

static int listen_on(struct d9__server *server, uint16_t port)
{
	struct evhttp_bound_socket *bound;
	struct sockaddr_in6 address; /* both kinds have the port in one place */
	socklen_t len = sizeof(address);
	bool is_six = strchr(server->address, ':');

	errno = 0;
	bound = evhttp_bind_socket_with_handle(server->http, server->address, port);
	if (!bound)
		return errno ? -errno : -EADDRINUSE;
	if (getsockname(evhttp_bound_socket_get_fd(bound), (struct sockaddr *)&address, &len))
		return -errno;
	/*
	 * Let more than libevent's 128 clients wait to be accepted; a client beyond the queue has
	 * to retry a second later.
	 */
	if (listen(evhttp_bound_socket_get_fd(bound), SOMAXCONN))
		return -errno;
	evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(bound), on_accept_error);
	server->port = ntohs(address.sin6_port);
	snprintf(server->url, sizeof(server->url),
		 is_six ? "http://[%s]:%u/%s/" : "http://%s:%u/%s/", server->address, server->port,
		 server->token);
	return 0;
}

static int start(struct d9__server *server, uint16_t port)
{
	static const int numbers[] = { SIGINT, SIGTERM };

	server->base = event_base_new();
	server->http = server->base ? evhttp_new(server->base) : NULL;
	if (server->http && server->source.attach && server->source.attach(server->source.context, server->base))
		return -ENOMEM;
	server->report = server->http ? d9__report_job_new(server->base) : NULL;
	server->upload = server->report ? d9__upload_new(server->base) : NULL;
	server->archive = server->upload ? d9__archive_new(server->base, &server->source) : NULL;
	server->guard = server->archive ? d9__guard_new(server->base, server->http) : NULL;
	if (!server->guard)
		return -ENOMEM;
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		server->signals[i] = evsignal_new(server->base, numbers[i], on_signal, server);
		if (!server->signals[i] || event_add(server->signals[i], NULL))
			return -ENOMEM;
	}
	evhttp_set_allowed_methods(server->http,
				   EVHTTP_REQ_GET | EVHTTP_REQ_HEAD | EVHTTP_REQ_POST);
	evhttp_set_max_headers_size(server->http, HEADERS_MAX);
	evhttp_set_max_body_size(server->http, D9__UPLOAD_PIECE);
	evhttp_set_timeout(server->http, IDLE_S);
	evhttp_set_gencb(server->http, on_request, server);
	return listen_on(server, port);
}

int d9__server_new(const struct d9__server_options *options, struct d9__server **out)
{
	struct d9__server *server = calloc(1, sizeof(*server));
	int err;

	if (!server)
		return -ENOMEM;
	server->address = options->listen ? options->listen : LOOPBACK;
	server->live = options->live;
	d9__budget_start(ARCHIVE_BYTES);
	server->source = options->source;
	server->name = options->name;
	err = d9__assets_load(&server->assets, options->assets);
	if (!err && !options->source.list)
		err = d9__local_source(options->trace, &server->source, &server->name);
	if (!err)
		err = d9__listing_refresh(&server->listing, &server->source);
	if (!err && !server->listing.n && !options->live && !options->source.list)
		err = -ENODATA;
	if (!err)
		err = make_token(server);
	if (!err)
		err = start(server, options->port);
	if (err) {
		d9__server_free(server);
		return err;
	}
	*out = server;
	return 0;
}

const char *d9__server_url(const struct d9__server *server)
{
	return server->url;
}

int d9__server_run(struct d9__server *server)
{
	return event_base_dispatch(server->base) < 0 ? -EIO : 0;
}

void d9__server_free(struct d9__server *server)
{
	if (!server)
		return;
	/* Clients that wait get their answers while there are connections. */
	if (server->source.end)
		server->source.end(server->source.context);
	d9__report_job_free(server->report);
	d9__upload_free(server->upload);
	d9__archive_free(server->archive);
	for (size_t i = 0; i < sizeof(server->signals) / sizeof(server->signals[0]); i++)
		if (server->signals[i])
			event_free(server->signals[i]);
	if (server->http)
		evhttp_free(server->http);
	d9__guard_free(server->guard);
	d9__listing_release(&server->listing);
	/* Its events are on |base|. */
	if (server->source.free)
		server->source.free(server->source.context);
	if (server->base)
		event_base_free(server->base);
	d9__assets_release(&server->assets);
	free(server);
}
