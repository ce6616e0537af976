/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mistakes with recording itself, and how the trace tells them: a span that is closed while its callback is inside
 * (SpanMisuseEvent), whole uploads as events, faster than they can be written (RecorderLossEvent), and a source that is
 * removed twice, of which GLib complains (LogEvent).
 *
 *	DIAL9_RING_MB=1 DIAL9_LOG_BRIDGE=warning mistakes
 */
#include <glib.h>
#include <stdio.h>

#include <dial9/dial9.h>
#include <dial9/glib.h>
#include <dial9/span.h>

#define REQUESTS 20
#define PARTS	 2000 /* of an upload, together more than the ring takes */

static const struct d9_field part_fields[] = { { "body", D9_FIELD_BYTES, NULL, NULL } };
static struct d9_event_type part_event = D9_EVENT_TYPE("UploadPart", part_fields);

static const struct d9_field request_fields[] = { { "number", D9_FIELD_VARINT, NULL, NULL } };
static struct d9_span_site request_site =
	D9_SPAN_SITE_WITH(D9_SPAN_INFO, "http", "request", request_fields);

static GMainLoop *loop;
static guint timeout;
static unsigned requests;

static gboolean on_timeout(gpointer arg)
{
	(void)arg;
	return G_SOURCE_REMOVE; /* GLib removes the source, and |timeout| is nobody's any more */
}

static void take_upload(void)
{
	static const char part[30000];

	for (int i = 0; i < PARTS; i++)
		D9_EMIT(&part_event, d9_bytes(part, sizeof(part)));
}

static void answer(struct d9_span *span)
{
	if (requests % 5 == 4)
		return; /* and leaves the span entered */
	d9_span_exit(span);
}

static gboolean on_request(gpointer arg)
{
	struct d9_span span;

	(void)arg;
	D9_SPAN_CREATE(&span, &request_site, D9_SPAN_ROOT, requests);
	d9_span_enter(&span);
	if (requests == REQUESTS / 2)
		take_upload();
	if (requests % 10 == 9)
		g_source_remove(timeout);
	answer(&span);
	d9_span_close(&span);
	if (++requests == REQUESTS)
		g_main_loop_quit(loop);
	return G_SOURCE_CONTINUE;
}

int main(void)
{
	loop = g_main_loop_new(NULL, FALSE);
	d9_g_main_context_attach(NULL);
	timeout = g_timeout_add(1, on_timeout, NULL);
	g_timeout_add(10, on_request, NULL);
	g_main_loop_run(loop);
	g_main_loop_unref(loop);
	printf("%u requests\n", requests);
	return 0;
}
