// SPDX-License-Identifier: Apache-2.0
#include "base/log_private.h"

#include "base/clock.h"

#include <string.h>

#define LIMIT_INTERVAL_US (10 * MUSTER_SECOND)
#define LIMIT_MESSAGES    5
#define MAX_FIELDS        24

guint muster_log_least_severe;

/* Parses like GLib: words, of which "all" means every domain. */
static gboolean
asks_for_all (const char *domains)
{
  if (domains == NULL)
    return FALSE;
  g_auto (GStrv) words = g_strsplit_set (domains, " ,", -1);
  return g_strv_contains ((const char *const *)words, "all") ||
         g_strv_contains ((const char *const *)words, MUSTER_LOG_DOMAIN);
}

gboolean
muster_log_determine (GLogLevelFlags level)
{
  guint unknown = 0;
  const guint least =
      asks_for_all (g_getenv ("G_MESSAGES_DEBUG")) ? G_LOG_LEVEL_DEBUG : G_LOG_LEVEL_WARNING;
  /* unless it was set meanwhile */
  __atomic_compare_exchange_n (&muster_log_least_severe, &unknown, least, FALSE, __ATOMIC_RELAXED,
                               __ATOMIC_RELAXED);
  return (guint)level <= __atomic_load_n (&muster_log_least_severe, __ATOMIC_RELAXED);
}

void
muster_log_set_level (GLogLevelFlags level)
{
  g_return_if_fail ((level & G_LOG_LEVEL_MASK) != 0);
  __atomic_store_n (&muster_log_least_severe, level & G_LOG_LEVEL_MASK, __ATOMIC_RELAXED);
}

const char *
muster_log_int (char text[24], gint64 number)
{
  g_snprintf (text, 24, "%" G_GINT64_FORMAT, number);
  return text;
}

const char *
muster_log_seconds (char text[24], gint64 us)
{
  char digits[G_ASCII_DTOSTR_BUF_SIZE];
  g_ascii_formatd (digits, sizeof digits, "%.6f", (double)us / MUSTER_SECOND);
  g_strlcpy (text, digits, 24);
  return text;
}

/* Syslog's. */
static const char *
priority_of (GLogLevelFlags level)
{
  return level <= G_LOG_LEVEL_CRITICAL  ? "3"
         : level == G_LOG_LEVEL_WARNING ? "4"
         : level == G_LOG_LEVEL_MESSAGE ? "5"
         : level == G_LOG_LEVEL_INFO    ? "6"
                                        : "7";
}

void
muster_log_write (GLogLevelFlags level, const char *event, ...)
{
  GLogField fields[MAX_FIELDS] = {
      {"PRIORITY", priority_of (level & G_LOG_LEVEL_MASK), -1},
      {"GLIB_DOMAIN", MUSTER_LOG_DOMAIN, -1},
      {"MUSTER_EVENT", event, -1},
  };
  gsize n = 3;
  va_list arguments;
  va_start (arguments, event);
  const char *key = va_arg (arguments, const char *);
  for (; strcmp (key, "MESSAGE") != 0; key = va_arg (arguments, const char *)) {
    const char *value = va_arg (arguments, const char *);
    if (value != NULL && *value != '\0' && n < MAX_FIELDS - 1)
      fields[n++] = (GLogField){key, value, -1};
  }
  const char *format = va_arg (arguments, const char *);
  g_autofree char *message = g_strdup_vprintf (format, arguments);
  va_end (arguments);
  fields[n++] = (GLogField){"MESSAGE", message, -1};
  g_log_structured_array (level, fields, n);
}

gboolean
muster_log_limit_allow (MusterLogLimit *self, gint64 now_us, char left_out[MUSTER_LOG_COUNT_SIZE])
{
  g_mutex_lock (&self->lock);
  if (self->n == 0 || now_us - self->began_us >= LIMIT_INTERVAL_US) {
    self->began_us = now_us;
    self->n = 0;
  }
  const gboolean is_allowed = self->n < (self->most > 0 ? self->most : LIMIT_MESSAGES);
  if (is_allowed) {
    g_snprintf (left_out, MUSTER_LOG_COUNT_SIZE, self->left_out > 0 ? "%u" : "", self->left_out);
    self->left_out = 0;
    self->n++;
  } else if (self->left_out < G_MAXUINT) {
    self->left_out++;
  }
  g_mutex_unlock (&self->lock);
  return is_allowed;
}

gboolean
muster_log_bounded (GLogLevelFlags level, MusterLogLimit *limit,
                    char left_out[MUSTER_LOG_COUNT_SIZE])
{
  return muster_log_enabled (level) &&
         muster_log_limit_allow (limit, muster_clock_now_us (muster_system_clock ()), left_out);
}
