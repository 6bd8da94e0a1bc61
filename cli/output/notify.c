// SPDX-License-Identifier: Apache-2.0
#include "cli/output/notify.h"

#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* How long a manager that is slow to read may hold up what it hears only once. */
#define LONGEST_S 5

/* The address in the environment, or 0 if there is none or it is invalid. */
static socklen_t
manager_address (struct sockaddr_un *address)
{
  const char *name = g_getenv ("NOTIFY_SOCKET");
  gsize size = name != NULL ? strlen (name) : 0;
  if (size < 2 || (*name != '/' && *name != '@') || size >= sizeof address->sun_path)
    return 0;
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  memcpy (address->sun_path, name, size);
  if (*name == '@')
    address->sun_path[0] = '\0';
  /* An abstract name ends with its length; a path ends with a NUL. */
  return (socklen_t)(offsetof (struct sockaddr_un, sun_path) + size + (*name == '/'));
}

/* A unit whose READY=1 was lost is stopped when its start takes too long; all else is said again.
 */
static gboolean
is_said_once (const char *text)
{
  return g_str_has_prefix (text, "READY=1") || g_str_has_prefix (text, "STOPPING=1");
}

static void
tell (const char *text)
{
  const struct timeval longest = {.tv_sec = LONGEST_S};
  const int flags = MSG_NOSIGNAL | (is_said_once (text) ? 0 : MSG_DONTWAIT);
  struct sockaddr_un address;
  socklen_t size = manager_address (&address);
  if (size == 0)
    return;
  int fd = socket (AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return;
  (void)setsockopt (fd, SOL_SOCKET, SO_SNDTIMEO, &longest, sizeof longest);
  /* If the service manager is gone, the service continues without it. */
  (void)sendto (fd, text, strlen (text), flags, (const struct sockaddr *)&address, size);
  close (fd);
}

void
muster_notify (const char *format, ...)
{
  va_list arguments;
  va_start (arguments, format);
  g_autofree char *text = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  tell (text);
}

void
muster_notify_status (const char *text)
{
  g_autofree char *line = g_strdelimit (g_strdup (text), "\r\n", ' ');
  muster_notify ("STATUS=%s", line);
}

gint64
muster_notify_watchdog_us (void)
{
  const char *usec = g_getenv ("WATCHDOG_USEC");
  const char *pid = g_getenv ("WATCHDOG_PID");
  guint64 timeout_us, wanted;
  if (usec == NULL || !g_ascii_string_to_unsigned (usec, 10, 1, G_MAXINT64, &timeout_us, NULL))
    return 0;
  if (pid != NULL && (!g_ascii_string_to_unsigned (pid, 10, 1, G_MAXINT32, &wanted, NULL) ||
                      wanted != (guint64)getpid ()))
    return 0;
  return (gint64)timeout_us;
}
