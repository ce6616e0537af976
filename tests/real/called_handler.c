/* SPDX-License-Identifier: Apache-2.0 */
/* A service whose handler GIO calls: it reads what a client sends later by a synchronous call. */
#include <gio/gio.h>

#define CLIENTS 6

static GMainLoop *loop;
static guint16 port;

static gboolean on_incoming(GSocketService *service, GSocketConnection *connection, GObject *source, gpointer data)
{
	char byte;

	(void)service, (void)source, (void)data;
	g_input_stream_read(g_io_stream_get_input_stream(G_IO_STREAM(connection)), &byte, 1, NULL, NULL);
	return TRUE;
}

static gpointer call_it(gpointer data)
{
	GSocketClient *client = g_socket_client_new();

	(void)data;
	for (int i = 0; i < CLIENTS; i++) {
		GSocketConnection *connection =
			g_socket_client_connect_to_host(client, "127.0.0.1", port, NULL, NULL);

		if (!connection)
			break;
		g_usleep(80000);
		g_output_stream_write(g_io_stream_get_output_stream(G_IO_STREAM(connection)), "x", 1, NULL, NULL);
		g_object_unref(connection);
	}
	g_object_unref(client);
	g_main_loop_quit(loop);
	return NULL;
}

int main(void)
{
	GSocketService *service = g_socket_service_new();
	GThread *thread;

	port = g_socket_listener_add_any_inet_port(G_SOCKET_LISTENER(service), NULL, NULL);
	if (!port)
		return 1;
	g_signal_connect(service, "incoming", G_CALLBACK(on_incoming), NULL);
	g_socket_service_start(service);
	loop = g_main_loop_new(NULL, FALSE);
	thread = g_thread_new("clients", call_it, NULL);
	g_main_loop_run(loop);
	g_thread_join(thread);
	g_object_unref(service);
	g_main_loop_unref(loop);
	return 0;
}
