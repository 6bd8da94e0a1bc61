// SPDX-License-Identifier: Apache-2.0
#include "base/blocking_private.h"
#include "rpc/listen_private.h"
#include "tests/gtest_shim.h"
#include "tests/rpc/echo.h"

#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* A network of its own, with two ports to pick from. */
#define FIRST_PORT 40000
#define N_PORTS    2

static const char *why_not; /* the tests can't run here */

static gboolean
bring_up_loopback (void)
{
  struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  const int fd = socket (AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const gboolean is_up = fd >= 0 && ioctl (fd, SIOCSIFFLAGS, &request) == 0;
  if (fd >= 0)
    (void)close (fd);
  return is_up;
}

static gboolean
narrow_ports (void)
{
  FILE *file = fopen ("/proc/sys/net/ipv4/ip_local_port_range", "w");
  const gboolean is_written =
      file != NULL && fprintf (file, "%d %d", FIRST_PORT, FIRST_PORT + N_PORTS - 1) > 0;
  return file != NULL && fclose (file) == 0 && is_written;
}

/* Before main (): a process with several threads can't enter a namespace of users. */
__attribute__ ((constructor)) static void
enter_namespace (void)
{
  if (unshare (CLONE_NEWNET) != 0 && unshare (CLONE_NEWUSER | CLONE_NEWNET) != 0)
    why_not = strerror (errno);
  else if (!bring_up_loopback () || !narrow_ports ())
    why_not = "this system doesn't let a network be set up";
}

/* Somebody else's listener at one of localhost's addresses, at a port (owned). */
static GSocket *
occupy (const char *host, guint16 port)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GSocketAddress) at = g_inet_socket_address_new_from_string (host, port);
  GSocket *socket = g_socket_new (g_socket_address_get_family (at), G_SOCKET_TYPE_STREAM,
                                  G_SOCKET_PROTOCOL_TCP, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (g_socket_bind (socket, at, TRUE, &error));
  MUSTER_EXPECT_TRUE (g_socket_listen (socket, &error));
  MUSTER_EXPECT_NO_ERROR (error);
  return socket;
}

/* A port that is taken at either address is never picked, at whichever the kernel would begin. */
MUSTER_TEST (Listen, picks_a_port_that_is_free_at_all_addresses_of_a_name)
{
  static const char *const hosts[] = {"127.0.0.1", "::1"};
  if (why_not != NULL)
    MUSTER_SKIP ("%s", why_not);
  for (guint i = 0; i < G_N_ELEMENTS (hosts) * N_PORTS; i++) {
    const guint16 taken = (guint16)(FIRST_PORT + i % N_PORTS);
    const guint16 spare = (guint16)(FIRST_PORT + (i + 1) % N_PORTS);
    g_autoptr (GSocket) other = occupy (hosts[i / N_PORTS], taken);
    g_autoptr (GError) error = NULL;
    g_autofree char *wanted = g_strdup_printf ("localhost:%u", spare);

    g_autofree char *picked = muster_listen_pick ("localhost:0", &error);

    MUSTER_TRACE ("%u taken at %s", taken, hosts[i / N_PORTS]);
    MUSTER_EXPECT_NO_ERROR (error);
    MUSTER_EXPECT_STREQ (picked, wanted);
  }
}

MUSTER_TEST (Listen, says_so_if_no_port_is_free_at_all_addresses)
{
  if (why_not != NULL)
    MUSTER_SKIP ("%s", why_not);
  g_autoptr (GSocket) one = occupy ("127.0.0.1", FIRST_PORT);
  g_autoptr (GSocket) other = occupy ("::1", FIRST_PORT + 1);
  g_autoptr (GError) error = NULL;

  g_autofree char *picked = muster_listen_pick ("localhost:0", &error);

  MUSTER_EXPECT_TRUE (picked == NULL);
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "localhost:0: ");
}

/* gRPC's server and a client at each address. */
MUSTER_TEST (Listen, a_server_has_all_addresses_of_its_name)
{
  if (why_not != NULL)
    MUSTER_SKIP ("%s", why_not);
  g_autoptr (GSocket) other = occupy ("127.0.0.1", FIRST_PORT + 1);
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterRpcServer) server = muster_rpc_server_new ();

  const int port = muster_rpc_server_listen (server, "localhost:0", NULL, &error);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (port, FIRST_PORT);
}

/* One address: whoever listens takes a free port itself, and no other process takes it between. */
MUSTER_TEST (Listen, leaves_port_0_of_a_single_address)
{
  g_autoptr (GError) error = NULL;
  g_autofree char *picked = muster_listen_pick ("127.0.0.1:0", &error);
  g_autofree char *six = muster_listen_pick ("[::1]:0", NULL);

  MUSTER_EXPECT_NO_ERROR (error);
  MUSTER_EXPECT_STREQ (picked, "127.0.0.1:0");
  MUSTER_EXPECT_TRUE (six == NULL || g_str_equal (six, "[::1]:0"));
}
