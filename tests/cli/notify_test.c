// SPDX-License-Identifier: Apache-2.0
#include "cli/output/notify.h"
#include "tests/gtest_shim.h"

#include <glib/gstdio.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* A manager's socket, named in the environment. */
typedef struct {
  int fd;
  char *name;   /* (owned) as in $NOTIFY_SOCKET */
  char *folder; /* (owned) (nullable) that the socket lies in */
} Manager;

static Manager
manager_at (const char *name)
{
  Manager self = {socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), g_strdup (name), NULL};
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  gsize size = strlen (name);
  memcpy (address.sun_path, name, size);
  if (*name == '@')
    address.sun_path[0] = '\0';
  size += offsetof (struct sockaddr_un, sun_path) + (*name == '/');
  MUSTER_EXPECT_EQ (bind (self.fd, (struct sockaddr *)&address, (socklen_t)size), 0);
  g_setenv ("NOTIFY_SOCKET", name, TRUE);
  return self;
}

/* A socket's path may have 107 characters; a test's own folder often has more. */
static Manager
manager_start (void)
{
  g_autofree char *folder = g_strdup ("/tmp/muster-notify-XXXXXX");
  MUSTER_EXPECT_TRUE (g_mkdtemp (folder) != NULL);
  g_autofree char *path = g_build_filename (folder, "notify", NULL);
  Manager self = manager_at (path);
  self.folder = g_steal_pointer (&folder);
  return self;
}

static void
manager_clear (Manager *self)
{
  g_unsetenv ("NOTIFY_SOCKET");
  g_unsetenv ("WATCHDOG_USEC");
  g_unsetenv ("WATCHDOG_PID");
  close (self->fd);
  if (self->folder != NULL) {
    g_unlink (self->name);
    g_rmdir (self->folder);
  }
  g_free (self->folder);
  g_free (self->name);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Manager, manager_clear)

/* What was told, or NULL: a datagram is there as soon as it has been sent. */
static char *
heard (Manager *self)
{
  char text[512];
  ssize_t size = recv (self->fd, text, sizeof text, MSG_DONTWAIT);
  return size >= 0 ? g_strndup (text, (gsize)size) : NULL;
}

#define EXPECT_RECEIVED(manager, wanted)                                                           \
  do {                                                                                             \
    g_autofree char *text_ = heard (manager);                                                      \
    MUSTER_EXPECT_STREQ (text_, wanted);                                                           \
  } while (0)

MUSTER_TEST (Notify, notifies_the_manager_in_one_datagram)
{
  g_auto (Manager) manager = manager_start ();
  muster_notify ("READY=1\nSTATUS=serving %d sessions", 3);

  EXPECT_RECEIVED (&manager, "READY=1\nSTATUS=serving 3 sessions");
  EXPECT_RECEIVED (&manager, NULL);
}

MUSTER_TEST (Notify, finds_an_abstract_socket)
{
  g_autofree char *name = g_strdup_printf ("@muster-notify-test-%d", (int)getpid ());
  g_auto (Manager) manager = manager_at (name);

  muster_notify ("STOPPING=1");

  EXPECT_RECEIVED (&manager, "STOPPING=1");
}

MUSTER_TEST (Notify, lets_no_text_make_an_assignment)
{
  g_auto (Manager) manager = manager_start ();
  muster_notify_status ("waiting for 'a\nREADY=1\r\nMAINPID=1'");

  EXPECT_RECEIVED (&manager, "STATUS=waiting for 'a READY=1  MAINPID=1'");
}

MUSTER_TEST (Notify, does_nothing_where_nobody_listens)
{
  g_autofree char *too_long = g_strnfill (4096, 'x');
  too_long[0] = '/';
  const char *const names[] = {NULL,    "", "/", "relative", "/no/such/socket", "@nobody-is-here",
                               too_long};
  for (guint i = 0; i < G_N_ELEMENTS (names); i++) {
    if (names[i] != NULL)
      g_setenv ("NOTIFY_SOCKET", names[i], TRUE);
    else
      g_unsetenv ("NOTIFY_SOCKET");
    muster_notify ("READY=1");
  }
  g_unsetenv ("NOTIFY_SOCKET");
}

/* More than the socket's queue takes: a manager that doesn't read holds nobody up. */
MUSTER_TEST (Notify, waits_for_nobody)
{
  g_auto (Manager) manager = manager_start ();
  for (int i = 0; i < 10000; i++)
    muster_notify ("WATCHDOG=1");

  EXPECT_RECEIVED (&manager, "WATCHDOG=1");
}

static gpointer
say_ready (gpointer data G_GNUC_UNUSED)
{
  muster_notify ("READY=1");
  return NULL;
}

/* A manager hears it once: its queue may be full at that moment. */
MUSTER_TEST (Notify, waits_until_the_manager_can_hear_that_it_is_ready)
{
  g_auto (Manager) manager = manager_start ();
  for (int i = 0; i < 10000; i++)
    muster_notify ("WATCHDOG=1");
  GThread *thread = g_thread_new ("ready", say_ready, NULL);
  g_usleep (100 * G_TIME_SPAN_MILLISECOND);

  gboolean is_ready = FALSE;
  for (int i = 0; i < 3000 && !is_ready; i++) {
    g_autofree char *text = heard (&manager);
    is_ready = g_strcmp0 (text, "READY=1") == 0;
    if (text == NULL)
      g_usleep (10 * G_TIME_SPAN_MILLISECOND);
  }

  MUSTER_EXPECT_TRUE (is_ready);
  g_thread_join (thread);
}

MUSTER_TEST (Notify, knows_when_the_watchdog_wants_to_be_notified)
{
  g_auto (Manager) manager = manager_start ();
  g_autofree char *own = g_strdup_printf ("%d", (int)getpid ());

  MUSTER_EXPECT_EQ (muster_notify_watchdog_us (), 0);
  g_setenv ("WATCHDOG_USEC", "3000000", TRUE);
  MUSTER_EXPECT_EQ (muster_notify_watchdog_us (), 3000000);
  g_setenv ("WATCHDOG_PID", own, TRUE);
  MUSTER_EXPECT_EQ (muster_notify_watchdog_us (), 3000000);
  g_setenv ("WATCHDOG_PID", "1", TRUE);
  MUSTER_EXPECT_EQ (muster_notify_watchdog_us (), 0);
  g_unsetenv ("WATCHDOG_PID");
  g_setenv ("WATCHDOG_USEC", "soon", TRUE);
  MUSTER_EXPECT_EQ (muster_notify_watchdog_us (), 0);
}
