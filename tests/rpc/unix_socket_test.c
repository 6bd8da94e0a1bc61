// SPDX-License-Identifier: Apache-2.0
/* Unix sockets: who may listen where, and who may connect. */
#include "rpc/client/diagnose.h"
#include "rpc/client/rpc_client_private.h"
#include "rpc/server/rpc_server_private.h"
#include "tests/deadline.h"
#include "tests/gtest_shim.h"

#include <glib/gstdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define ANOTHER_USER 65534

static void
answer_call (MusterRpcCall *call, GBytes *request, gpointer user_data G_GNUC_UNUSED)
{
  g_auto (MusterRope) reply = MUSTER_ROPE_INIT;
  muster_rope_append (&reply, request);
  muster_rpc_call_reply (call, &reply);
}

/* A folder that other users may enter; a socket's path is short. */
static const char *
folder (void)
{
  static char *made;
  if (made == NULL) {
    made = g_dir_make_tmp ("muster-XXXXXX", NULL);
    MUSTER_EXPECT_EQ (g_chmod (made, 0755), 0);
  }
  return made;
}

static char *
address_of (const char *name)
{
  return g_strconcat ("unix:", folder (), "/", name, NULL);
}

static const char *
path_of (const char *address)
{
  return address + strlen ("unix:");
}

/* NULL with an error if it can't listen. */
static MusterRpcServer *
serve (const char *address, const guint32 *users, gsize n_users, GError **error)
{
  g_autoptr (MusterRpcServer) server = muster_rpc_server_new ();
  muster_rpc_server_allow_users (server, users, n_users);
  muster_rpc_server_add_method (server, "/test.Echo/Echo", answer_call, NULL);
  if (muster_rpc_server_listen (server, address, NULL, error) == 0)
    return NULL;
  muster_rpc_server_start (server);
  return g_steal_pointer (&server);
}

static gboolean
call (const char *address, GError **error)
{
  const MusterRpcOptions options = {.deadline_us = test_deadline ()};
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, NULL);
  g_autoptr (GBytes) answer =
      muster_rpc_client_call (client, "/test.Echo/Echo", NULL, &options, NULL, error);
  return answer != NULL;
}

static mode_t
mode_of (const char *address)
{
  struct stat st = {0};
  MUSTER_EXPECT_EQ (stat (path_of (address), &st), 0);
  return st.st_mode & 0777;
}

MUSTER_TEST (UnixSocket, is_served_and_removed_at_the_end)
{
  static const char *const names[] = {"socket", "a b%20c"};
  for (gsize i = 0; i < G_N_ELEMENTS (names); i++) {
    g_autofree char *address = address_of (names[i]);
    g_autoptr (GError) error = NULL, after = NULL;
    g_autoptr (MusterRpcServer) server = serve (address, NULL, 0, &error);
    MUSTER_ASSERT_NO_ERROR (error);
    MUSTER_EXPECT_EQ (mode_of (address), 0600u);
    MUSTER_EXPECT_TRUE (call (address, &error));
    MUSTER_ASSERT_NO_ERROR (error);
    muster_rpc_server_stop (server, 0);
    MUSTER_EXPECT_FALSE (g_file_test (path_of (address), G_FILE_TEST_EXISTS));
    MUSTER_EXPECT_FALSE (call (address, &after));
    MUSTER_EXPECT_ERROR (after, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE);
  }
}

MUSTER_TEST (UnixSocket, that_is_served_is_refused_to_another_server)
{
  g_autofree char *address = address_of ("socket");
  g_autoptr (GError) error = NULL, second = NULL;
  g_autoptr (MusterRpcServer) server = serve (address, NULL, 0, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_NULL (serve (address, NULL, 0, &second));
  MUSTER_EXPECT_SAYS (second, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "address already in use");
  MUSTER_EXPECT_TRUE (call (address, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

/* What a program without that lock does. */
static int
listen_at (const char *address)
{
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  const int fd = socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  g_strlcpy (at.sun_path, path_of (address), sizeof at.sun_path);
  MUSTER_EXPECT_EQ (bind (fd, (struct sockaddr *)&at, sizeof at), 0);
  MUSTER_EXPECT_EQ (listen (fd, 1), 0);
  return fd;
}

MUSTER_TEST (UnixSocket, of_another_program_is_replaced_only_once_it_is_dead)
{
  g_autofree char *address = address_of ("socket");
  g_autoptr (GError) error = NULL, live = NULL, full = NULL;
  const int other = listen_at (address);
  MUSTER_EXPECT_NULL (serve (address, NULL, 0, &live));
  MUSTER_EXPECT_SAYS (live, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "address already in use");
  for (int i = 0; i < 4; i++) { /* until its backlog is full */
    g_autoptr (GError) ignored = NULL;
    MUSTER_EXPECT_NULL (serve (address, NULL, 0, &ignored));
  }
  MUSTER_EXPECT_NULL (serve (address, NULL, 0, &full));
  MUSTER_EXPECT_SAYS (full, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "address already in use");
  close (other);
  g_autoptr (MusterRpcServer) server = serve (address, NULL, 0, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_TRUE (call (address, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

MUSTER_TEST (UnixSocket, never_replaces_a_file)
{
  g_autofree char *address = address_of ("file"), *content = NULL;
  g_autofree char *absent = address_of ("absent/socket");
  g_autofree char *name = g_strnfill (108, 'x'), *longer = g_strconcat ("unix:/", name, NULL);
  g_autoptr (GError) error = NULL, of_absent = NULL, of_longer = NULL;
  MUSTER_ASSERT_TRUE (g_file_set_contents (path_of (address), "text", 4, NULL));
  MUSTER_EXPECT_NULL (serve (address, NULL, 0, &error));
  MUSTER_EXPECT_SAYS (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "a file that isn't a socket");
  MUSTER_ASSERT_TRUE (g_file_get_contents (path_of (address), &content, NULL, NULL));
  MUSTER_EXPECT_STREQ (content, "text");
  MUSTER_EXPECT_NULL (serve (absent, NULL, 0, &of_absent));
  MUSTER_EXPECT_SAYS (of_absent, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "No such file");
  MUSTER_EXPECT_NULL (serve (longer, NULL, 0, &of_longer));
  MUSTER_EXPECT_SAYS (of_longer, MUSTER_ERROR, MUSTER_ERROR_INVALID_ARGUMENT, "at most 107 bytes");
}

static void
expect_stage (const char *address, MusterReach stage, const char *words)
{
  g_auto (MusterDiagnosis) found = {0};
  muster_diagnose (address, FALSE, test_deadline (), NULL, &found);
  MUSTER_TRACE ("%s", found.text);
  MUSTER_EXPECT_EQ ((int)found.stage, (int)stage);
  MUSTER_EXPECT_TRUE (strstr (found.text, words) != NULL);
}

MUSTER_TEST (UnixSocket, is_diagnosed)
{
  g_autofree char *address = address_of ("socket"), *absent = address_of ("absent");
  g_autoptr (MusterRpcServer) server = serve (address, NULL, 0, NULL);
  expect_stage (address, MUSTER_REACH_ANSWERS, "HTTP/2 settings received");
  expect_stage (absent, MUSTER_REACH_REFUSED, "there is no such socket: no process listens there");
}

MUSTER_TEST (UnixSocket, is_found_when_its_server_starts)
{
  g_autofree char *address = address_of ("socket");
  g_autoptr (MusterRpcClient) client = muster_rpc_client_new (address, NULL);
  const gint64 until_us = test_deadline ();
  MUSTER_EXPECT_EQ ((int)muster_rpc_client_reach (client, until_us, NULL), (int)MUSTER_SERVER_DOWN);
  g_autoptr (MusterRpcServer) server = serve (address, NULL, 0, NULL);
  MUSTER_EXPECT_EQ ((int)muster_rpc_client_reach (client, until_us, NULL),
                    (int)MUSTER_SERVER_CHANGED);
}

/* --- other users --- */

/* Whether a process of another user reads a byte of the server's: 1, 0, or 2: it can't try. Nothing
 * in it may allocate memory. */
static int
read_as_another (const char *address)
{
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  static const char opening[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
  int status = -1;
  g_strlcpy (at.sun_path, path_of (address), sizeof at.sun_path);
  const pid_t pid = fork ();
  if (pid == 0) {
    char byte;
    alarm (30);
    const int fd = setresuid (ANOTHER_USER, ANOTHER_USER, ANOTHER_USER) == 0
                       ? socket (AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)
                       : -1;
    if (fd < 0 || connect (fd, (struct sockaddr *)&at, sizeof at) != 0)
      _exit (2);
    (void)!send (fd, opening, sizeof opening - 1, MSG_NOSIGNAL);
    _exit (recv (fd, &byte, 1, 0) == 1 ? 1 : 0);
  }
  (void)waitpid (pid, &status, 0);
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

MUSTER_TEST (UnixSocket, is_for_the_users_that_are_allowed)
{
  static const guint32 others[] = {ANOTHER_USER - 1, ANOTHER_USER};
  g_autoptr (GError) error = NULL;
  g_autofree char *address = address_of ("shared");
  g_autoptr (MusterRpcServer) server = serve (address, others, 1, &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (mode_of (address), 0666u);
  const int refused = read_as_another (address);
  MUSTER_EXPECT_TRUE (call (address, &error)); /* the server's own user */
  MUSTER_EXPECT_NO_ERROR (error);
  g_clear_pointer (&server, muster_rpc_server_free);
  server = serve (address, others, 2, &error);
  const int allowed = read_as_another (address);
  if (refused == 2)
    MUSTER_SKIP ("only root can try it as another user");
  MUSTER_EXPECT_EQ (refused, 0);
  MUSTER_EXPECT_EQ (allowed, 1);
}

/* Last: what is left in the folder are the locks, and what a test made. */
MUSTER_TEST (UnixSocketFolder, has_no_socket_left)
{
  g_autoptr (GDir) dir = g_dir_open (folder (), 0, NULL);
  for (const char *name; (name = g_dir_read_name (dir)) != NULL;) {
    struct stat st;
    g_autofree char *path = g_build_filename (folder (), name, NULL);
    MUSTER_EXPECT_EQ (stat (path, &st), 0);
    MUSTER_EXPECT_FALSE (S_ISSOCK (st.st_mode));
    (void)g_unlink (path);
  }
  MUSTER_EXPECT_EQ (g_rmdir (folder ()), 0);
}
