// SPDX-License-Identifier: Apache-2.0
#include "cli/cli.h"
#include "server/server.h"

#include <signal.h>
#include <string.h>

#define GRACE (2 * MUSTER_SECOND)

static const char summary[] =
    "Serves a master in this process: sessions and variables for a chief and its workers, with "
    "TensorFlow's\n"
    "MasterService on the wire and readiness pushed to those who wait. Prints 'serving "
    "grpc://HOST:PORT' once it\n"
    "serves (and 'health grpc://HOST:PORT' for --health-listen), and ends at SIGINT or SIGTERM. "
    "What it holds is\n"
    "gone then: save first.";

/* The host part of HOST:PORT, to print beside the port that was taken. */
static char *
host_of (const char *address)
{
  const char *colon = strrchr (address, ':');
  return colon == NULL ? g_strdup (address) : g_strndup (address, colon - address);
}

/* In one piece: whoever reads only the first line may be gone before a second write. */
static void
say_ports (const char *address, int port, const char *health_address, int health_port)
{
  g_autoptr (GString) text = g_string_new (NULL);
  g_autofree char *host = host_of (address);
  g_string_append_printf (text, "serving grpc://%s:%d\n", host, port);
  if (health_address != NULL) {
    g_autofree char *health_host = host_of (health_address);
    g_string_append_printf (text, "health grpc://%s:%d\n", health_host, health_port);
  }
  fwrite (text->str, 1, text->len, stdout);
  fflush (stdout);
}

int
muster_cli_serve (int argc, char **argv)
{
  g_autofree char *listen = NULL;
  g_autofree char *health_listen = NULL;
  g_autofree char *target = NULL;
  g_auto (MusterCliOptions) options = {0};
  g_autoptr (GError) error = NULL;
  const GOptionEntry entries[] = {
      {"listen", 0, 0, G_OPTION_ARG_STRING, &listen,
       "where to listen (default localhost:2222; port 0 takes a free one)", "HOST:PORT"},
      {"health-listen", 0, 0, G_OPTION_ARG_STRING, &health_listen,
       "a port that offers gRPC health and nothing else (it is also offered beside the rest)",
       "HOST:PORT"},
      {"master", 0, 0, G_OPTION_ARG_STRING, &target,
       "the master to serve: local (the default), or grpc://HOST:PORT to stand in front of another",
       "TARGET"},
      {NULL}};
  if (!muster_cli_parse (argc, argv, "", summary, entries, 0, &options, NULL, &error))
    return muster_cli_fail (error);
  const char *address = listen != NULL ? listen : "localhost:2222";

  /* Before any thread is made: all inherit the mask, and only sigwait takes these. */
  sigset_t ends;
  sigemptyset (&ends);
  sigaddset (&ends, SIGINT);
  sigaddset (&ends, SIGTERM);
  pthread_sigmask (SIG_BLOCK, &ends, NULL);

  g_autoptr (MusterMaster) master =
      muster_master_new_for_target (target != NULL ? target : "local", &error);
  if (master == NULL)
    return muster_cli_fail (error);
  g_autoptr (MusterServer) server = muster_server_new (master, NULL);
  int port = muster_server_listen (server, address, &error);
  int health_port = port != 0 && health_listen != NULL
                        ? muster_server_listen_health (server, health_listen, &error)
                        : 0;
  if (error != NULL) {
    muster_cli_fail (error);
    return MUSTER_EXIT_BAD_INPUT;
  }
  muster_server_start (server);
  say_ports (address, port, health_listen, health_port);

  int signal = 0;
  sigwait (&ends, &signal);
  muster_server_stop (server, GRACE);
  return MUSTER_EXIT_DONE;
}
