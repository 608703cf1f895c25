/*
 * An HTTP server on GLib's main loop; stands still on /slow, ends on /quit, prints its thread and what it did.
 * usage: gio_server PORT
 */
#include <gio/gio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static GMainLoop *loop;
static unsigned long accepts, receives, sends;

static gboolean readable(GSocket *s, GIOCondition why, gpointer unused)
{
	char in[4096], out[256], path[64] = "";
	gssize n = g_socket_receive(s, in, sizeof(in) - 1, NULL, NULL);
	(void)why;
	(void)unused;
	receives++;
	if (n <= 0) {
		g_socket_close(s, NULL);
		g_object_unref(s);
		return G_SOURCE_REMOVE;
	}
	in[n] = 0;
	sscanf(in, "GET %63s", path);
	if (!strcmp(path, "/slow"))
		g_usleep(300000);
	int len = snprintf(out, sizeof(out), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s", strlen(path), path);
	g_socket_send(s, out, (gsize)len, NULL, NULL);
	sends++;
	if (!strcmp(path, "/quit"))
		g_main_loop_quit(loop);
	return G_SOURCE_CONTINUE;
}

static void watch(GSocket *s, GSocketSourceFunc f)
{
	GSource *source = g_socket_create_source(s, G_IO_IN, NULL);
	g_source_set_callback(source, G_SOURCE_FUNC(f), NULL, NULL);
	g_source_attach(source, NULL);
	g_source_unref(source);
}

static gboolean acceptable(GSocket *listener, GIOCondition why, gpointer unused)
{
	GSocket *s = g_socket_accept(listener, NULL, NULL);
	(void)why;
	(void)unused;
	if (s) {
		accepts++;
		watch(s, readable);
	}
	return G_SOURCE_CONTINUE;
}

int main(int argc, char **argv)
{
	GSocket *s = g_socket_new(G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, NULL);
	GInetAddress *here = g_inet_address_new_loopback(G_SOCKET_FAMILY_IPV4);
	GSocketAddress *a = g_inet_socket_address_new(here, (guint16)(argc > 1 ? atoi(argv[1]) : 0));
	if (!s || !g_socket_bind(s, a, TRUE, NULL) || !g_socket_listen(s, NULL))
		return 1;
	loop = g_main_loop_new(NULL, FALSE);
	watch(s, acceptable);
	g_main_loop_run(loop);
	printf("TRUTH tid=%ld accept=%lu recv=%lu send=%lu\n", syscall(SYS_gettid), accepts, receives, sends);
	return 0;
}
