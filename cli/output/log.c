// SPDX-License-Identifier: Apache-2.0
/* Writes the command's log to stderr, in the chosen format. A thread writes, so that a terminal
 * or pipe that stands still doesn't hold the program up. */
#include "cli/output/log.h"

#include "base/clock.h"
#include "base/error.h"
#include "cli/output/log_queue.h"
#include "cli/output/sanitise.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Of messages that wait to be written: some thousands. */
#define MAX_WAITING (1 << 20)
/* How long the end of the process waits for its log. */
#define PATIENCE_US (3 * MUSTER_SECOND)

typedef enum {
  FORMAT_PLAIN, /* for a person who reads a command's report */
  FORMAT_TEXT,
  FORMAT_JSON,
  FORMAT_JOURNALD,
} Format;

static Format format;         /* atomic */
static MusterLogQueue *queue; /* (nullable) atomic; never freed: its thread may be in a write */
static GMutex print_lock;
static MusterLogPrint print_by; /* (nullable) guarded by print_lock */
static gpointer print_data;

/* --- writing --- */

/* Past stdio, whose locks would be held while a write blocks. What can't be written is lost. */
static void
write_whole (const char *bytes, gsize size)
{
  while (size > 0) {
    const gssize n = write (STDERR_FILENO, bytes, size);
    if (n < 0 && errno == EAGAIN)
      (void)poll (&(struct pollfd){.fd = STDERR_FILENO, .events = POLLOUT}, 1, -1);
    else if (n < 0 && errno != EINTR)
      return;
    bytes += MAX (n, 0);
    size -= (gsize)MAX (n, 0);
  }
}

static char *
line_of (const MusterLogMessage *message, Format as)
{
  if (as == FORMAT_PLAIN)
    return muster_log_message_as_plain (message, TRUE);
  return as == FORMAT_JSON ? muster_log_message_as_json (message)
                           : muster_log_message_as_text (message);
}

/* On the queue's thread. */
static void
write_queued (const MusterLogMessage *message, gpointer user_data G_GNUC_UNUSED)
{
  const Format as = (Format)g_atomic_int_get ((gint *)&format);
  if (as == FORMAT_JOURNALD && muster_log_message_to_journald (message))
    return;
  g_autofree char *line = line_of (message, as);
  g_autofree char *ended = g_strconcat (line, "\n", NULL);
  write_whole (ended, strlen (ended));
}

static void
print_plain (const MusterLogMessage *message)
{
  g_autofree char *line = muster_log_message_as_plain (message, FALSE);
  g_autofree char *shown = muster_cli_statement (line);
  g_autofree char *ended = g_strconcat (shown, "\n", NULL);
  write_whole (ended, strlen (ended));
}

/* TRUE if it was printed here: a person reads it, maybe on a display. */
static gboolean
print_here (const MusterLogMessage *message, Format as)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&print_lock);
  if (print_by != NULL && as != FORMAT_JOURNALD) {
    g_autofree char *line = line_of (message, as);
    print_by (line, print_data);
    return TRUE;
  }
  if (as == FORMAT_PLAIN)
    print_plain (message);
  return as == FORMAT_PLAIN;
}

/* What other libraries say below WARNING is GLib's to decide (G_MESSAGES_DEBUG). */
static gboolean
is_dropped (const MusterLogMessage *message)
{
  g_autofree char *domain = muster_log_message_find (message, "GLIB_DOMAIN");
  if (g_strcmp0 (domain, MUSTER_LOG_DOMAIN) == 0)
    return FALSE; /* muster_log () has asked */
  return message->level > G_LOG_LEVEL_MESSAGE &&
         g_log_writer_default_would_drop (message->level, domain);
}

static GLogWriterOutput
write_message (GLogLevelFlags level, const GLogField *fields, gsize n_fields,
               gpointer user_data G_GNUC_UNUSED)
{
  const MusterLogMessage message = {
      level & G_LOG_LEVEL_MASK, muster_clock_wall_us (muster_system_clock ()), fields, n_fields};
  const Format as = (Format)g_atomic_int_get ((gint *)&format);
  if (is_dropped (&message) || print_here (&message, as))
    return G_LOG_WRITER_HANDLED;
  muster_log_queue_add (g_atomic_pointer_get (&queue), &message);
  if (level & G_LOG_FATAL_MASK) /* GLib aborts next */
    muster_cli_log_flush ();
  return G_LOG_WRITER_HANDLED;
}

void
muster_cli_log_begin (void)
{
  if (!muster_log_enabled (G_LOG_LEVEL_DEBUG)) /* else G_MESSAGES_DEBUG asks for all */
    muster_log_set_level (G_LOG_LEVEL_MESSAGE);
  g_log_set_writer_func (write_message, NULL, NULL);
}

/* --- the options --- */

static gboolean
read_level (const char *name, GLogLevelFlags *level, GError **error)
{
  *level = muster_log_level_of (name);
  return *level != 0 ||
         muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --log-level '%s' (use error, warning, notice, info or debug)", name);
}

static gboolean
read_format (const char *name, Format *as, GError **error)
{
  static const char *const names[] = {NULL, "text", "json", "journald"};
  for (Format i = FORMAT_TEXT; i <= FORMAT_JOURNALD; i++) {
    *as = i;
    if (strcmp (name, names[i]) == 0)
      return TRUE;
  }
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --log-format '%s' (use text, json or journald)", name);
}

static Format
usual_format (void)
{
  return g_log_writer_is_journald (fileno (stderr)) ? FORMAT_JOURNALD : FORMAT_TEXT;
}

gboolean
muster_cli_log_set (const char *level, const char *as, gboolean is_service, GError **error)
{
  GLogLevelFlags least = is_service ? G_LOG_LEVEL_INFO : G_LOG_LEVEL_MESSAGE;
  const gboolean is_report = !is_service && level == NULL && as == NULL;
  Format chosen = is_report ? FORMAT_PLAIN : usual_format ();
  if ((level != NULL && !read_level (level, &least, error)) ||
      (as != NULL && !read_format (as, &chosen, error)))
    return FALSE;
  if (level != NULL || !muster_log_enabled (G_LOG_LEVEL_DEBUG))
    muster_log_set_level (least);
  if (chosen != FORMAT_PLAIN && queue == NULL)
    g_atomic_pointer_set (&queue, muster_log_queue_new (MAX_WAITING, write_queued, NULL));
  g_atomic_int_set ((gint *)&format, (gint)chosen);
  return TRUE;
}

gboolean
muster_cli_log_is_parsed (void)
{
  return g_atomic_int_get ((gint *)&format) >= FORMAT_JSON;
}

void
muster_cli_log_print_by (MusterLogPrint print, gpointer user_data)
{
  g_mutex_lock (&print_lock);
  print_by = print;
  print_data = user_data;
  g_mutex_unlock (&print_lock);
}

void
muster_cli_log_flush (void)
{
  if (queue != NULL)
    (void)muster_log_queue_flush (
        queue, muster_deadline_after (muster_clock_now_us (muster_system_clock ()), PATIENCE_US));
}
