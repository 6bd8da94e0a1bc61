// SPDX-License-Identifier: Apache-2.0
/* The files of a backup's directory. */
#include "callbacks/backup_files_private.h"

#include "base/crc32c_private.h"
#include "base/error.h"
#include "base/files/json_text_private.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/store/storage_failure_private.h"

#include <json-glib/json-glib.h>
#include <string.h>

#define VARIABLES MUSTER_BACKUP_VARIABLES
#define HALF      ".saving-"
#define ANY_ID    "????????" /* separate: with the '-' after it, it would contain a trigraph */

#define VERSION     1
#define MAX_NESTING 4
#define MAX_SIZE    4096

/* --- the metadata --- */

/* The checksum covers this text, so its bytes mustn't change. */
static char *
print_with (const MusterBackupMetadata *self, const char *last)
{
  return g_strdup_printf (
      "{\"version\": %d, \"epoch\": %" G_GINT64_FORMAT ", \"batch\": %" G_GINT64_FORMAT
      ", \"after_batch\": %" G_GINT64_FORMAT ", \"variables\": %" G_GINT64_FORMAT
      ", \"run\": %" G_GINT64_FORMAT "%s}\n",
      VERSION, self->epoch, self->batch, self->after_batch, self->variables, self->run, last);
}

static guint32
sum_of (const MusterBackupMetadata *self)
{
  g_autofree char *text = print_with (self, "");
  return muster_crc32c_extend (0, text, strlen (text));
}

char *
muster_backup_metadata_print (const MusterBackupMetadata *self)
{
  g_autofree char *sum = g_strdup_printf (", \"crc32c\": %u", sum_of (self));
  return print_with (self, sum);
}

static gboolean
number (JsonObject *object, const char *name, gint64 most, gint64 *value)
{
  JsonNode *node = json_object_get_member (object, name);
  if (node == NULL || json_node_get_value_type (node) != G_TYPE_INT64)
    return FALSE;
  *value = json_node_get_int (node);
  return *value >= 0 && *value <= most;
}

static gboolean
read_fields (JsonObject *object, MusterBackupMetadata *self)
{
  const gint64 most = G_MAXINT64 / 4;
  gint64 version, sum;
  return number (object, "version", VERSION, &version) && version == VERSION &&
         number (object, "epoch", most, &self->epoch) &&
         number (object, "batch", most, &self->batch) &&
         number (object, "after_batch", 1, &self->after_batch) &&
         number (object, "variables", most, &self->variables) &&
         number (object, "run", G_MAXINT64, &self->run) &&
         number (object, "crc32c", G_MAXUINT32, &sum) && (guint32)sum == sum_of (self);
}

static gboolean
refuse_metadata (const char *path, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS, "'%s' is damaged: invalid backup metadata",
                      path);
}

gboolean
muster_backup_metadata_parse (const char *path, GBytes *bytes, MusterBackupMetadata *self,
                              GError **error)
{
  gsize size;
  const char *data = g_bytes_get_data (bytes, &size);
  MusterBackupMetadata parsed = {0};
  g_autoptr (JsonParser) parser = json_parser_new ();
  if (size == 0 || size > MAX_SIZE || !g_utf8_validate (data, (gssize)size, NULL))
    return refuse_metadata (path, error);
  g_autofree char *text = g_strndup (data, size);
  if (!muster_json_is_flat (text, MAX_NESTING) || !muster_json_is_one_object (text) ||
      !json_parser_load_from_data (parser, text, -1, NULL))
    return refuse_metadata (path, error);
  JsonNode *root = json_parser_get_root (parser); /* NULL: only whitespace */
  if (root == NULL || !JSON_NODE_HOLDS_OBJECT (root) ||
      !read_fields (json_node_get_object (root), &parsed))
    return refuse_metadata (path, error);
  *self = parsed;
  return TRUE;
}

gboolean
muster_backup_metadata_read (MusterStorage *storage, const char *path, MusterBackupMetadata *self,
                             GError **error)
{
  MusterStorageInfo info;
  if (!muster_storage_stat (storage, path, &info, error))
    return FALSE;
  if (info.size > MAX_SIZE)
    return refuse_metadata (path, error);
  g_autoptr (GBytes) bytes = muster_storage_read (storage, path, error);
  return bytes != NULL && muster_backup_metadata_parse (path, bytes, self, error);
}

gboolean
muster_backup_metadata_write (MusterStorage *storage, const char *path,
                              const MusterBackupMetadata *self, GError **error)
{
  g_autofree char *text = muster_backup_metadata_print (self);
  return muster_storage_publish (storage, path, text, strlen (text), error);
}

/* --- the files --- */

char *
muster_backup_metadata_path (const char *directory, const char *suffix)
{
  g_autofree char *name = g_strconcat (MUSTER_METADATA_FILE, suffix, NULL);
  return g_build_filename (directory, name, NULL);
}

char *
muster_backup_record_path (const char *directory, gint64 number)
{
  g_autofree char *suffix = g_strdup_printf (".%" G_GINT64_FORMAT, number);
  return muster_backup_metadata_path (directory, suffix);
}

char *
muster_backup_variables_prefix (const char *directory, gint64 number)
{
  g_autofree char *name = g_strdup_printf (VARIABLES "%" G_GINT64_FORMAT, number);
  return g_build_filename (directory, name, NULL);
}

/* N of "latest-N.SOMETHING"; -1: it is no such file. */
static gint64
number_of (const char *file)
{
  char *end = NULL;
  if (!g_str_has_prefix (file, VARIABLES) || !g_ascii_isdigit (file[strlen (VARIABLES)]))
    return -1;
  gint64 number = g_ascii_strtoll (file + strlen (VARIABLES), &end, 10);
  return *end == '.' && number < G_MAXINT64 / 4 ? number : -1;
}

/* N of "training_metadata.json.N"; -1: it is no such file. */
static gint64
number_of_record (const char *file)
{
  const gsize n = strlen (MUSTER_METADATA_FILE ".");
  gint64 number = -1;
  if (!g_str_has_prefix (file, MUSTER_METADATA_FILE ".") || !g_ascii_isdigit (file[n]) ||
      !g_ascii_string_to_signed (file + n, 10, 0, G_MAXINT64 / 4, &number, NULL))
    return -1;
  return number;
}

/* Returns TRUE for a file of a killed save: ".saving-0123abcd-latest-N…". */
static gboolean
is_half (const char *file)
{
  return g_pattern_match_simple (HALF ANY_ID "-" VARIABLES "*", file);
}

static gboolean
is_half_metadata (const char *file)
{
  return g_str_has_prefix (file, MUSTER_METADATA_FILE ".") && strstr (file, ".tempstate") != NULL;
}

/* Empty if there is no directory. */
static char **
list (MusterStorage *storage, const char *directory, GError **error)
{
  g_autoptr (GError) why = NULL;
  char **files = muster_storage_list (storage, directory, &why);
  if (files != NULL || muster_storage_failure_is_absent (why))
    return files != NULL ? files : g_new0 (char *, 1);
  g_propagate_error (error, g_steal_pointer (&why));
  return NULL;
}

gboolean
muster_backup_has_variables (MusterStorage *storage, const char *directory, gint64 number)
{
  g_autoptr (GError) why = NULL;
  g_auto (GStrv) files = muster_storage_list (storage, directory, &why);
  if (files == NULL)
    return !muster_storage_failure_is_absent (why);
  for (char **file = files; *file; file++)
    if (number_of (*file) == number)
      return TRUE;
  return FALSE;
}

gboolean
muster_backup_highest (MusterStorage *storage, const char *directory, gint64 *highest,
                       GError **error)
{
  g_auto (GStrv) files = list (storage, directory, error);
  *highest = 0;
  for (char **file = files; file != NULL && *file != NULL; file++)
    *highest = MAX (*highest, MAX (number_of (*file), number_of_record (*file)));
  return files != NULL;
}

static int
descending (gconstpointer a, gconstpointer b)
{
  const gint64 first = *(const gint64 *)a, second = *(const gint64 *)b;
  return (second > first) - (second < first);
}

GArray *
muster_backup_records (MusterStorage *storage, const char *directory, GError **error)
{
  g_auto (GStrv) files = list (storage, directory, error);
  if (files == NULL)
    return NULL;
  GArray *records = g_array_new (FALSE, FALSE, sizeof (gint64));

  for (char **file = files; *file; file++) {
    const gint64 number = number_of_record (*file);
    if (number >= 0)
      g_array_append_val (records, number);
  }
  g_array_sort (records, descending);
  return records;
}

static gboolean
is_kept (gint64 number, const gint64 *kept, gsize n_kept)
{
  for (gsize i = 0; i < n_kept; i++)
    if (kept[i] == number)
      return TRUE;
  return FALSE;
}

static gboolean
remove_in (MusterStorage *storage, const char *directory, const char *file, GError **error)
{
  g_autofree char *path = g_build_filename (directory, file, NULL);
  return muster_storage_remove (storage, path, error);
}

void
muster_backup_remove_variables (MusterStorage *storage, const char *directory, const gint64 *kept,
                                gsize n_kept)
{
  g_auto (GStrv) files = list (storage, directory, NULL);
  for (char **file = files; file != NULL && *file != NULL; file++) {
    gint64 number = MAX (number_of (*file), number_of_record (*file));
    if ((number >= 0 && !is_kept (number, kept, n_kept)) || is_half (*file) ||
        is_half_metadata (*file))
      (void)remove_in (storage, directory, *file, NULL);
  }
}

static gboolean
remove_records (MusterStorage *storage, const char *directory, GError **error)
{
  g_autoptr (GArray) records = muster_backup_records (storage, directory, error);
  for (guint i = 0; records != NULL && i < records->len; i++) {
    g_autofree char *path =
        muster_backup_record_path (directory, g_array_index (records, gint64, i));
    if (!muster_storage_remove (storage, path, error))
      return FALSE;
  }
  return records != NULL;
}

/* Removes the newer metadata last, durably, before the variables: a backup that can be found can be
 * read. */
gboolean
muster_backup_delete_files (MusterStorage *storage, const char *directory, GError **error)
{
  MusterStorageInfo info;
  g_autoptr (GError) why = NULL;
  g_auto (GStrv) files = muster_storage_list (storage, directory, &why);
  if (files == NULL && muster_storage_failure_is_absent (why))
    return TRUE;
  if (!remove_records (storage, directory, error) ||
      !remove_in (storage, directory, MUSTER_METADATA_FILE ".bkp", error) ||
      !muster_storage_sync_directory (storage, directory, error) ||
      !remove_in (storage, directory, MUSTER_METADATA_FILE, error) ||
      !muster_storage_sync_directory (storage, directory, error))
    return FALSE;
  muster_backup_remove_variables (storage, directory, NULL, 0);
  g_autofree char *lock = g_build_filename (directory, MUSTER_BACKUP_LOCK, NULL);
  if (muster_storage_stat (storage, lock, &info, NULL))
    (void)muster_storage_remove (storage, lock, NULL);
  return TRUE;
}

void
muster_backup_delete_directory (MusterStorage *storage, const char *directory)
{
  g_auto (GStrv) files = muster_storage_list (storage, directory, NULL);
  if (files == NULL ||
      (files[0] != NULL && (files[1] != NULL || strcmp (files[0], MUSTER_LOCK_FILE) != 0)))
    return;
  if (files[0] != NULL)
    (void)remove_in (storage, directory, files[0], NULL);
  (void)muster_storage_remove (storage, directory, NULL);
}
