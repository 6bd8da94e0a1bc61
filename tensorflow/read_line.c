// SPDX-License-Identifier: Apache-2.0
#include "tensorflow/read_line_private.h"

#include "base/clock.h"
#include "base/safe_text_private.h"

#include <errno.h>
#include <poll.h>
#include <unistd.h>

static int
milliseconds_until (gint64 deadline_us)
{
  gint64 left_us =
      muster_deadline_remaining (deadline_us, muster_clock_now_us (muster_system_clock ()));
  if (left_us == MUSTER_WAIT_FOREVER)
    return -1;
  return (int)MIN ((left_us + MUSTER_MILLISECOND - 1) / MUSTER_MILLISECOND, G_MAXINT);
}

/* Waits until data or the end of the file can be read. */
static gboolean
wait_for (int fd, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  GPollFD wanted[2] = {{.fd = fd, .events = G_IO_IN}};
  gboolean can_cancel = cancellable != NULL && g_cancellable_make_pollfd (cancellable, &wanted[1]);
  int n;
  do
    n = g_poll (wanted, can_cancel ? 2 : 1, milliseconds_until (deadline_us));
  while (n < 0 && errno == EINTR);
  if (can_cancel)
    g_cancellable_release_fd (cancellable);
  if (g_cancellable_set_error_if_cancelled (cancellable, error))
    return FALSE;
  if (n > 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "no output");
}

/* Reads at most n bytes; 0 at the end of the file or if the connection broke. */
static gssize
read_some (int fd, char *bytes, gsize n)
{
  gssize got;
  do
    got = read (fd, bytes, n);
  while (got < 0 && errno == EINTR);
  return MAX (got, 0);
}

char *
muster_runtime_read_line (int fd, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  g_autoptr (GString) line = g_string_new (NULL);
  char byte;
  while (line->len < MUSTER_RUNTIME_MAX_LINE) {
    if (!wait_for (fd, deadline_us, cancellable, error))
      return NULL;
    if (read_some (fd, &byte, 1) == 0) {
      muster_fail (error, MUSTER_ERROR_UNAVAILABLE, "it exited without a message");
      return NULL;
    }
    if (byte == '\n')
      break;
    g_string_append_c (line, byte);
  }
  return muster_safe_text (line->str, (gssize)line->len, 0);
}
