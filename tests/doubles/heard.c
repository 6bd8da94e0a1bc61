// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/heard.h"

#include "base/clock.h"
#include "base/log_private.h"
#include "base/wait_private.h"

#define PATIENCE_US (30 * MUSTER_SECOND)

static GMutex lock;
static GCond more;
static GPtrArray *messages; /* (nullable) (element-type GHashTable) NULL: not hearing */

static char *
text_of (const GLogField *field)
{
  return field->length < 0 ? g_strdup (field->value)
                           : g_strndup (field->value, (gsize)field->length);
}

static GLogWriterOutput
write_message (GLogLevelFlags level, const GLogField *fields, gsize n_fields, gpointer user_data)
{
  g_autoptr (GHashTable) message = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free);
  for (gsize i = 0; i < n_fields; i++)
    g_hash_table_replace (message, g_strdup (fields[i].key), text_of (&fields[i]));
  g_hash_table_replace (message, g_strdup ("level"), g_strdup_printf ("%d", (int)level));
  g_mutex_lock (&lock);
  const gboolean is_heard =
      messages != NULL &&
      g_strcmp0 (g_hash_table_lookup (message, "GLIB_DOMAIN"), MUSTER_LOG_DOMAIN) == 0;
  if (is_heard)
    g_ptr_array_add (messages, g_steal_pointer (&message));
  g_cond_broadcast (&more);
  g_mutex_unlock (&lock);
  return is_heard ? G_LOG_WRITER_HANDLED
                  : g_log_writer_default (level, fields, n_fields, user_data);
}

void
heard_begin (GLogLevelFlags level)
{
  static gsize is_set;
  if (g_once_init_enter (&is_set)) { /* GLib allows one writer in the life of a process */
    g_log_set_writer_func (write_message, NULL, NULL);
    g_once_init_leave (&is_set, 1);
  }
  g_mutex_lock (&lock);
  g_clear_pointer (&messages, g_ptr_array_unref);
  messages = g_ptr_array_new_with_free_func ((GDestroyNotify)g_hash_table_unref);
  g_mutex_unlock (&lock);
  muster_log_set_level (level);
}

void
heard_end (void)
{
  muster_log_set_level (G_LOG_LEVEL_WARNING);
  g_mutex_lock (&lock);
  g_clear_pointer (&messages, g_ptr_array_unref);
  g_mutex_unlock (&lock);
}

static gboolean
is_like (GHashTable *message, const char *event, const char *pattern)
{
  const char *text = g_hash_table_lookup (message, "MESSAGE");
  return (event == NULL || g_strcmp0 (g_hash_table_lookup (message, "MUSTER_EVENT"), event) == 0) &&
         (pattern == NULL || (text != NULL && g_pattern_match_simple (pattern, text)));
}

/* Call with the lock held. The last; (transfer none) (nullable) */
static GHashTable *
find (const char *event, const char *pattern, guint *n)
{
  GHashTable *found = NULL;
  *n = 0;
  for (guint i = 0; messages != NULL && i < messages->len; i++)
    if (is_like (messages->pdata[i], event, pattern)) {
      found = messages->pdata[i];
      (*n)++;
    }
  return found;
}

guint
heard_count (const char *event, const char *pattern)
{
  guint n;
  g_mutex_lock (&lock);
  find (event, pattern, &n);
  g_mutex_unlock (&lock);
  return n;
}

gboolean
heard_wait (const char *event, const char *pattern)
{
  const gint64 deadline_us =
      muster_deadline_after (muster_clock_now_us (muster_system_clock ()), PATIENCE_US);
  gboolean is_in_time = TRUE;
  guint n;
  g_mutex_lock (&lock);
  while (find (event, pattern, &n) == NULL && is_in_time)
    is_in_time = muster_wait_change (&more, &lock, deadline_us);
  g_mutex_unlock (&lock);
  return n > 0;
}

char *
heard_field (const char *event, const char *key)
{
  return heard_field_like (event, NULL, key);
}

char *
heard_field_like (const char *event, const char *pattern, const char *key)
{
  guint n;
  g_mutex_lock (&lock);
  GHashTable *found = find (event, pattern, &n);
  char *value = found != NULL ? g_strdup (g_hash_table_lookup (found, key)) : NULL;
  g_mutex_unlock (&lock);
  return value;
}

GLogLevelFlags
heard_level (const char *event)
{
  g_autofree char *level = heard_field (event, "level");
  return level != NULL ? (GLogLevelFlags)g_ascii_strtoull (level, NULL, 10) : 0;
}
