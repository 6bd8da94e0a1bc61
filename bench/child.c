// SPDX-License-Identifier: Apache-2.0
#include "bench/bench.h"

#include <stdlib.h>
#include <string.h>

static BenchChild *
child_new (const char *const *argv, GSubprocessFlags more)
{
  g_autoptr (GError) error = NULL;
  BenchChild *self = g_new0 (BenchChild, 1);
  self->process = g_subprocess_newv (
      argv, G_SUBPROCESS_FLAGS_STDIN_PIPE | G_SUBPROCESS_FLAGS_STDOUT_PIPE | more, &error);
  bench_check (error, argv[0]);
  self->out = g_data_input_stream_new (g_subprocess_get_stdout_pipe (self->process));
  return self;
}

BenchChild *
bench_child_new (const char *const *argv)
{
  return child_new (argv, G_SUBPROCESS_FLAGS_NONE);
}

BenchChild *
bench_child_new_merged (const char *const *argv)
{
  return child_new (argv, G_SUBPROCESS_FLAGS_STDERR_MERGE);
}

BenchChild *
bench_child_new_mode_with (const char *mode, const char *argument)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *self = g_file_read_link ("/proc/self/exe", &error);
  bench_check (error, "finding this program");
  return bench_child_new ((const char *const[]){self, mode, argument, NULL});
}

BenchChild *
bench_child_new_mode (const char *mode)
{
  return bench_child_new_mode_with (mode, NULL);
}

char *
bench_child_line (BenchChild *self)
{
  g_autoptr (GError) error = NULL;
  char *line = g_data_input_stream_read_line (self->out, NULL, NULL, &error);
  bench_check (error, "reading from a child");
  if (line == NULL)
    bench_fail ("a child ended before it had answered");
  return line;
}

typedef struct {
  GDataInputStream *out; /* (owned) */
  void (*take) (const char *line, gpointer data);
  gpointer data;
} Reader;

static gpointer
read_lines (gpointer data)
{
  Reader *self = data;
  for (;;) {
    g_autofree char *line = g_data_input_stream_read_line (self->out, NULL, NULL, NULL);
    if (line == NULL)
      break;
    self->take (line, self->data);
  }
  g_object_unref (self->out);
  g_free (self);
  return NULL;
}

GThread *
bench_child_read (BenchChild *self, void (*take) (const char *line, gpointer data), gpointer data)
{
  Reader *reader = g_new (Reader, 1);
  *reader = (Reader){g_object_ref (self->out), take, data};
  return g_thread_new ("reader", read_lines, reader);
}

void
bench_child_say (BenchChild *self, const char *line)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *text = g_strconcat (line, "\n", NULL);
  g_output_stream_write_all (g_subprocess_get_stdin_pipe (self->process), text, strlen (text), NULL,
                             NULL, &error);
  bench_check (error, "writing to a child");
}

int
bench_child_pid (BenchChild *self)
{
  return atoi (g_subprocess_get_identifier (self->process));
}

double
bench_event_number (const char *line, const char *name)
{
  g_autofree char *sought = g_strdup_printf ("\"%s\":", name);
  const char *at = strstr (line, sought);
  return at != NULL ? g_ascii_strtod (at + strlen (sought), NULL) : 0;
}

void
bench_child_free (BenchChild *self)
{
  if (self == NULL)
    return;
  g_subprocess_force_exit (self->process);
  (void)g_subprocess_wait (self->process, NULL, NULL); /* it was killed: how it ended is known */
  g_object_unref (self->out);
  g_object_unref (self->process);
  g_free (self);
}

BenchChild *
bench_serve_command (const char *const *options, char **address)
{
  return bench_serve_command_at ("--listen=127.0.0.1:0", options, address);
}

BenchChild *
bench_serve_command_at (const char *listen, const char *const *options, char **address)
{
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_ptr_array_add (argv, "cli/muster");
  g_ptr_array_add (argv, "serve");
  g_ptr_array_add (argv, (char *)listen);
  g_ptr_array_add (argv, "--log-level=warning"); /* not in the table */
  for (gsize i = 0; options != NULL && options[i] != NULL; i++)
    g_ptr_array_add (argv, (char *)options[i]);
  g_ptr_array_add (argv, NULL);
  if (!g_file_test (argv->pdata[0], G_FILE_TEST_IS_EXECUTABLE))
    bench_fail ("'cli/muster' isn't here: run this with 'bazel run //bench'");
  BenchChild *server = bench_child_new ((const char *const *)argv->pdata);
  g_autofree char *line = bench_child_line (server);
  const char *scheme_end = strstr (line, "://");
  if (!g_str_has_prefix (line, "serving grpc") || scheme_end == NULL)
    bench_fail ("'muster serve' printed '%s'", line);
  *address = g_strdup (scheme_end + strlen ("://"));
  return server;
}

char *
bench_free_address (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GInetAddress) loopback = g_inet_address_new_loopback (G_SOCKET_FAMILY_IPV4);
  g_autoptr (GSocketAddress) any = g_inet_socket_address_new (loopback, 0);
  g_autoptr (GSocket) socket =
      g_socket_new (G_SOCKET_FAMILY_IPV4, G_SOCKET_TYPE_STREAM, G_SOCKET_PROTOCOL_TCP, &error);
  bench_check (error, "making a socket");
  g_socket_bind (socket, any, TRUE, &error);
  bench_check (error, "finding a free port");
  g_autoptr (GSocketAddress) bound = g_socket_get_local_address (socket, &error);
  bench_check (error, "finding a free port");
  return g_strdup_printf ("127.0.0.1:%u",
                          g_inet_socket_address_get_port (G_INET_SOCKET_ADDRESS (bound)));
}

char *
bench_tensorflow_python (void)
{
  const char *home = g_getenv ("MUSTER_TENSORFLOW");
  g_autofree char *usual = g_build_filename (g_get_home_dir (), ".cache/muster/tensorflow", NULL);
  g_autofree char *python =
      g_build_filename (home != NULL && *home != '\0' ? home : usual, "bin/python3", NULL);
  return g_file_test (python, G_FILE_TEST_IS_EXECUTABLE) ? g_steal_pointer (&python) : NULL;
}

BenchChild *
bench_tensorflow_child (const char *script, const char *const *arguments)
{
  g_autofree char *python = bench_tensorflow_python ();
  if (python == NULL)
    return NULL;
  g_autofree char *path = g_build_filename ("bench", script, NULL);
  if (!g_file_test (path, G_FILE_TEST_EXISTS))
    bench_fail ("'%s' isn't here: run this with 'bazel run //bench'", path);
  g_autoptr (GPtrArray) argv = g_ptr_array_new ();
  g_ptr_array_add (argv, python);
  g_ptr_array_add (argv, path);
  for (gsize i = 0; arguments != NULL && arguments[i] != NULL; i++)
    g_ptr_array_add (argv, (char *)arguments[i]);
  g_ptr_array_add (argv, NULL);
  return bench_child_new ((const char *const *)argv->pdata);
}
