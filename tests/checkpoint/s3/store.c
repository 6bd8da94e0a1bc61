// SPDX-License-Identifier: Apache-2.0
/* A store for the scripts beside this: one command a line on standard input, one JSON object a line
 * on standard output. With "--fake-clock", pauses between retries take no time.
 *
 *   write PATH SIZE      a file of SIZE bytes 0, 1, …, 250, 0, …
 *   begin PATH SIZE      the same, left open; then "end" or "drop"
 *   read PATH            its size and SHA-256
 *   range PATH AT SIZE   of a part
 *   keep PATH            opens it; then "again AT SIZE" reads it
 *   list, stat, remove, copy
 *   sweep PATH [BEFORE]  uploads that were begun before then, in seconds since 1970
 *   get PATH             its content and version
 *   put PATH VERSION TEXT   replaces it; VERSION is "any", "none" or an ETag
 *   within MS, cancel MS    bounds what follows; 0: no longer
 *   metrics */
#include "base/error.h"
#include "checkpoint/s3/s3_metrics.h"
#include "checkpoint/s3/s3_storage.h"
#include "tests/doubles/fake_clock.h"

#include <json-glib/json-glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD 251
#define CHUNK  ((gsize)(4096 * PERIOD))

typedef struct {
  MusterStorage *storage; /* (owned) */
  MusterStorage *bound;   /* (owned) what commands use */
  MusterFakeClock *fake;  /* (owned) (nullable) */
  MusterStorageFile *file;
  MusterStorageInput *input;
  JsonBuilder *out; /* (owned) */
} Tool;

static void
tell_text (Tool *self, const char *name, const char *value)
{
  json_builder_set_member_name (self->out, name);
  json_builder_add_string_value (self->out, value);
}

static void
tell_number (Tool *self, const char *name, gint64 value)
{
  json_builder_set_member_name (self->out, name);
  json_builder_add_int_value (self->out, value);
}

static gboolean
append (Tool *self, MusterStorageFile *file, guint64 size, GError **error)
{
  g_autofree guint8 *chunk = g_malloc (CHUNK);
  for (gsize i = 0; i < CHUNK; i++)
    chunk[i] = (guint8)(i % PERIOD);
  for (; size > 0; size -= MIN (size, CHUNK))
    if (!muster_storage_append (self->bound, file, chunk, (gsize)MIN (size, CHUNK), error))
      return FALSE;
  return TRUE;
}

static gboolean
begin (Tool *self, const char *path, const char *size, GError **error)
{
  self->file = muster_storage_create (self->bound, path, error);
  if (self->file == NULL)
    return FALSE;
  if (append (self, self->file, g_ascii_strtoull (size, NULL, 10), error))
    return TRUE;
  muster_storage_abandon (self->bound, g_steal_pointer (&self->file));
  return FALSE;
}

static gboolean
end (Tool *self, GError **error)
{
  return muster_storage_close (self->bound, g_steal_pointer (&self->file), error);
}

static gboolean
tell_range (Tool *self, MusterStorageInput *input, guint64 at, gsize size, GError **error)
{
  g_autoptr (GBytes) bytes = muster_storage_read_bytes_at (self->bound, input, at, size, error);
  if (bytes == NULL)
    return FALSE;
  g_autofree char *hash = g_compute_checksum_for_bytes (G_CHECKSUM_SHA256, bytes);
  tell_text (self, "sha256", hash);
  tell_number (self, "size", (gint64)g_bytes_get_size (bytes));
  return TRUE;
}

static gboolean
read_file (Tool *self, const char *path, const char *at, const char *size, GError **error)
{
  guint64 whole;
  MusterStorageInput *input = muster_storage_open (self->bound, path, &whole, error);
  if (input == NULL)
    return FALSE;
  const gboolean is_read =
      tell_range (self, input, at != NULL ? g_ascii_strtoull (at, NULL, 10) : 0,
                  size != NULL ? (gsize)g_ascii_strtoull (size, NULL, 10) : (gsize)whole, error);
  muster_storage_close_input (self->bound, input);
  return is_read;
}

static gboolean
keep (Tool *self, const char *path, GError **error)
{
  guint64 size;
  self->input = muster_storage_open (self->bound, path, &size, error);
  return self->input != NULL;
}

static gboolean
list (Tool *self, const char *directory, GError **error)
{
  g_auto (GStrv) names = muster_storage_list (self->bound, directory, error);
  if (names == NULL)
    return FALSE;
  json_builder_set_member_name (self->out, "names");
  json_builder_begin_array (self->out);
  for (gsize i = 0; names[i] != NULL; i++)
    json_builder_add_string_value (self->out, names[i]);
  json_builder_end_array (self->out);
  return TRUE;
}

static gboolean
stat_file (Tool *self, const char *path, GError **error)
{
  MusterStorageInfo info;
  if (!muster_storage_stat (self->bound, path, &info, error))
    return FALSE;
  tell_number (self, "size", (gint64)info.size);
  tell_number (self, "mtime_us", info.mtime_us);
  return TRUE;
}

static gboolean
get (Tool *self, const char *path, GError **error)
{
  g_autofree char *version = NULL;
  g_autoptr (GBytes) bytes = muster_storage_read_versioned (self->bound, path, &version, error);
  if (version != NULL)
    tell_text (self, "version", version);
  if (bytes == NULL)
    return FALSE;
  g_autofree char *text = g_strndup (g_bytes_get_data (bytes, NULL), g_bytes_get_size (bytes));
  tell_text (self, "text", text);
  return TRUE;
}

static gboolean
put (Tool *self, const char *path, const char *version, const char *text, GError **error)
{
  g_autofree char *now = NULL;
  version = strcmp (version, "any") == 0 ? NULL : strcmp (version, "none") == 0 ? "" : version;
  if (!muster_storage_replace (self->bound, path, text, strlen (text), version, &now, error))
    return FALSE;
  tell_text (self, "version", now);
  return TRUE;
}

static gpointer
cancel_later (gpointer data)
{
  g_autoptr (GCancellable) cancellable = data;
  const gint64 us = (gint64)(gsize)g_object_get_data (data, "after");
  MusterClock *clock = muster_system_clock ();
  muster_clock_wait_until (clock, muster_clock_now_us (clock) + us, NULL, NULL);
  g_cancellable_cancel (cancellable);
  return NULL;
}

static gboolean
bound (Tool *self, const char *ms, gboolean cancels)
{
  const gint64 us = g_ascii_strtoll (ms, NULL, 10) * MUSTER_MILLISECOND;
  MusterClock *clock = self->fake != NULL ? MUSTER_CLOCK (self->fake) : muster_system_clock ();
  g_autoptr (GCancellable) cancellable = cancels && us > 0 ? g_cancellable_new () : NULL;
  g_object_unref (self->bound);
  self->bound = muster_storage_bound (
      self->storage, us > 0 && !cancels ? muster_clock_now_us (clock) + us : MUSTER_WAIT_FOREVER,
      clock, cancellable);
  if (cancellable != NULL) {
    g_object_set_data (G_OBJECT (cancellable), "after", (gpointer)(gsize)us);
    g_thread_unref (g_thread_new ("cancel", cancel_later, g_object_ref (cancellable)));
  }
  return TRUE;
}

static gboolean
metrics (Tool *self)
{
  MusterS3Metrics counts;
  muster_s3_metrics (&counts);
  const struct {
    const char *name;
    guint64 value;
  } all[] = {
      {"requests", counts.requests},
      {"bytes_sent", counts.bytes_sent},
      {"bytes_received", counts.bytes_received},
      {"throttled", counts.retries_throttled},
      {"failed", counts.retries_failed},
      {"lost", counts.retries_lost},
      {"stalled", counts.retries_stalled},
      {"damaged", counts.retries_damaged},
      {"expired", counts.retries_expired},
      {"failures", counts.failures},
      {"buffered_max", counts.buffered_max},
      {"elapsed_us", self->fake != NULL ? (guint64)muster_fake_clock_elapsed_us (self->fake) : 0},
  };
  for (gsize i = 0; i < G_N_ELEMENTS (all); i++)
    tell_number (self, all[i].name, (gint64)all[i].value);
  return TRUE;
}

static gboolean
run (Tool *self, char **words, GError **error)
{
  const char *verb = words[0], *path = words[1];
#define IS(name) (strcmp (verb, name) == 0)
  if (IS ("write"))
    return begin (self, path, words[2], error) && end (self, error);
  if (IS ("begin"))
    return begin (self, path, words[2], error);
  if (IS ("end"))
    return end (self, error);
  if (IS ("drop")) {
    muster_storage_abandon (self->bound, g_steal_pointer (&self->file));
    return TRUE;
  }
  if (IS ("read"))
    return read_file (self, path, NULL, NULL, error);
  if (IS ("range"))
    return read_file (self, path, words[2], words[3], error);
  if (IS ("keep"))
    return keep (self, path, error);
  if (IS ("again"))
    return tell_range (self, self->input, g_ascii_strtoull (words[1], NULL, 10),
                       (gsize)g_ascii_strtoull (words[2], NULL, 10), error);
  if (IS ("list"))
    return list (self, path, error);
  if (IS ("stat"))
    return stat_file (self, path, error);
  if (IS ("remove"))
    return muster_storage_remove (self->bound, path, error);
  if (IS ("copy"))
    return muster_storage_copy (self->bound, path, words[2], error);
  if (IS ("sweep"))
    return muster_storage_sweep (
        self->bound, path,
        words[2] != NULL ? g_ascii_strtoll (words[2], NULL, 10) * MUSTER_SECOND : G_MAXINT64,
        error);
  if (IS ("get"))
    return get (self, path, error);
  if (IS ("put"))
    return put (self, path, words[2], words[3], error);
  if (IS ("within"))
    return bound (self, path, FALSE);
  if (IS ("cancel"))
    return bound (self, path, TRUE);
  if (IS ("metrics"))
    return metrics (self);
  return muster_fail (error, MUSTER_ERROR_UNIMPLEMENTED, "no command '%s'", verb);
}

static void
answer (Tool *self, char *line)
{
  g_autoptr (GError) error = NULL;
  g_auto (GStrv) words = g_strsplit (g_strchomp (line), "\t", -1);
  self->out = json_builder_new ();
  json_builder_begin_object (self->out);
  if (!run (self, words, &error)) {
    tell_text (self, "error", error->message);
    tell_text (self, "code",
               error->domain == MUSTER_ERROR ? muster_error_name (error->code)
               : g_error_matches (error, G_FILE_ERROR, G_FILE_ERROR_NOENT)        ? "absent"
               : g_error_matches (error, G_IO_ERROR, G_IO_ERROR_HOST_UNREACHABLE) ? "unavailable"
               : g_error_matches (error, G_IO_ERROR, G_IO_ERROR_CANCELLED)        ? "stopped"
                                                                                  : "other");
  }
  json_builder_end_object (self->out);
  g_autoptr (JsonNode) root = json_builder_get_root (self->out);
  g_autofree char *text = json_to_string (root, FALSE);
  puts (text);
  fflush (stdout);
  g_clear_object (&self->out);
}

int
main (int argc, char **argv)
{
  Tool self = {0};
  g_autoptr (GError) error = NULL;
  const char *stall = g_getenv ("STALL_MS"), *retry = g_getenv ("RETRY_MS");
  if (argc > 1 && strcmp (argv[1], "--fake-clock") == 0)
    self.fake = muster_fake_clock_new ();
  const MusterS3Options options = {
      .clock = (MusterClock *)self.fake,
      .stall_us = stall != NULL ? atoi (stall) * MUSTER_MILLISECOND : 0,
      .retry_us = retry != NULL ? atoi (retry) * MUSTER_MILLISECOND : 0,
  };
  self.storage = muster_s3_storage_new (&options, &error);
  if (self.storage == NULL) {
    fprintf (stderr, "%s\n", error->message);
    return 1;
  }
  self.bound = g_object_ref (self.storage);
  char *line = NULL;
  size_t size = 0;
  while (getline (&line, &size, stdin) > 0)
    answer (&self, line);
  free (line);
  if (self.input != NULL)
    muster_storage_close_input (self.bound, self.input);
  g_object_unref (self.bound);
  g_object_unref (self.storage);
  g_clear_object (&self.fake);
  return 0;
}
