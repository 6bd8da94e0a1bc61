// SPDX-License-Identifier: Apache-2.0
/* TensorFlow's child process, as other users of the machine meet it. */
#include "tensorflow/runtime_private.h"
#include "tests/gtest_shim.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static MusterRuntime *
start (const char *how, GError **error)
{
  const MusterRuntimeOptions options = {.library = "tests/tensorflow_master/libtensorflow_fake.so",
                                        .helper = "tensorflow/muster-tensorflow"};
  g_setenv ("MUSTER_FAKE_TENSORFLOW", how, TRUE);
  g_autoptr (MusterRuntime) runtime = muster_runtime_new (&options, error);
  const gboolean serves =
      runtime != NULL && muster_runtime_await (runtime, MUSTER_WAIT_FOREVER, NULL, error);
  return serves ? g_steal_pointer (&runtime) : NULL;
}

static int
open_connection (guint16 port)
{
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons (port), .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  const int fd = socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  MUSTER_EXPECT_EQ (connect (fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

#define ANOTHER_USER 65534

/* A connection of a process of a user (0: this one's) that sends a text (nullable), or else waits
 * for a greeting. Returns 1 if it was greeted, 0 if not, 2 if it can't connect. Nothing in it may
 * allocate memory. */
static int
connect_as (uid_t user, guint16 port, const char *text)
{
  struct sockaddr_in address = {
      .sin_family = AF_INET, .sin_port = htons (port), .sin_addr.s_addr = htonl (INADDR_LOOPBACK)};
  int status = -1;
  const pid_t pid = fork ();
  if (pid == 0) {
    char greeting[8];
    alarm (30);
    const int fd = user == 0 || setresuid (user, user, user) == 0
                       ? socket (AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)
                       : -1;
    if (fd < 0 || connect (fd, (struct sockaddr *)&address, sizeof address) != 0)
      _exit (2);
    if (text != NULL)
      _exit (write (fd, text, strlen (text)) > 0 ? 0 : 2);
    _exit (recv (fd, greeting, 5, MSG_WAITALL) == 5 ? 1 : 0);
  }
  (void)waitpid (pid, &status, 0);
  return WIFEXITED (status) ? WEXITSTATUS (status) : -1;
}

static gboolean
can_be_another (void)
{
  int status = -1;
  const pid_t pid = fork ();
  if (pid == 0)
    _exit (setresuid (ANOTHER_USER, ANOTHER_USER, ANOTHER_USER) == 0 ? 0 : 1);
  (void)waitpid (pid, &status, 0);
  return WIFEXITED (status) && WEXITSTATUS (status) == 0;
}

MUSTER_TEST (Runtime, is_closed_to_other_users_of_the_machine)
{
  static const char *const ways[] = {"greet", "greet by accept4"};
  if (!can_be_another ())
    MUSTER_SKIP ("only root can try it as another user");
  for (gsize i = 0; i < G_N_ELEMENTS (ways); i++) {
    g_autoptr (GError) error = NULL;
    g_autoptr (MusterRuntime) runtime = start (ways[i], &error);
    MUSTER_ASSERT_NO_ERROR (error);
    const guint16 port = muster_runtime_port (runtime);
    MUSTER_EXPECT_EQ (connect_as (0, port, NULL), 1);
    MUSTER_EXPECT_EQ (connect_as (ANOTHER_USER, port, NULL), 0);
    MUSTER_EXPECT_EQ (connect_as (0, port, NULL), 1);
  }
}

static gboolean
await_text (const char *path, const char *text)
{
  for (int i = 0; i < 3000; i++) {
    g_autofree char *content = NULL;
    if (g_file_get_contents (path, &content, NULL, NULL) && strstr (content, text) != NULL)
      return TRUE;
    g_usleep (10000);
  }
  return FALSE;
}

/* The kernel says of a socket that its process has closed that it is root's. */
MUSTER_TEST (Runtime, reads_nothing_that_another_user_sent_and_left)
{
  if (!can_be_another ())
    MUSTER_SKIP ("only root can try it as another user");
  g_autofree char *gate = g_build_filename (muster_test_tmpdir (), "gate", NULL);
  g_autofree char *content = NULL;
  g_autoptr (GError) error = NULL;
  g_setenv ("MUSTER_FAKE_TENSORFLOW_GATE", gate, TRUE);
  g_autoptr (MusterRuntime) runtime = start ("be late", &error);
  MUSTER_ASSERT_NO_ERROR (error);
  MUSTER_EXPECT_EQ (connect_as (ANOTHER_USER, muster_runtime_port (runtime), "steal"), 0);
  MUSTER_ASSERT_TRUE (g_file_set_contents (gate, "", 0, NULL));
  const int own = open_connection (muster_runtime_port (runtime));
  MUSTER_EXPECT_EQ (write (own, "own", 3), 3);
  MUSTER_EXPECT_TRUE (await_text (gate, "own"));
  close (own);
  MUSTER_ASSERT_TRUE (g_file_get_contents (gate, &content, NULL, NULL));
  MUSTER_EXPECT_STREQ (content, "own");
}
