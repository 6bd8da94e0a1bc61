// SPDX-License-Identifier: Apache-2.0
#include "callbacks/backup_files_private.h"

#include "base/error.h"
#include "checkpoint/format/crc32c.h"

#include <string.h>

#define VERSION   1
#define MOST_SIZE 4096

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
number (GVariant *object, const char *name, gint64 most, gint64 *value)
{
  return g_variant_lookup (object, name, "x", value) && *value >= 0 && *value <= most;
}

/* An object of numbers alone is a dictionary in GVariant's text form too, whose parser is bounded
 * in depth and used to what isn't trusted. */
static gboolean
read_fields (GVariant *object, MusterBackupMetadata *self)
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
refuse (const char *path, GError **error)
{
  g_set_error (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS,
               "'%s' is damaged: it isn't what a backup has written", path);

  return FALSE;
}

gboolean
muster_backup_metadata_parse (const char *path, GBytes *bytes, MusterBackupMetadata *self,
                              GError **error)
{
  gsize size;
  const char *data = g_bytes_get_data (bytes, &size);
  MusterBackupMetadata parsed = {0};

  g_autoptr (GVariant) object =
      size > 0 && size <= MOST_SIZE && g_utf8_validate (data, (gssize)size, NULL)
          ? g_variant_parse (G_VARIANT_TYPE ("a{sx}"), data, data + size, NULL, NULL)
          : NULL;
  if (object && read_fields (object, &parsed)) {
    *self = parsed;
    return TRUE;
  }

  return refuse (path, error);
}

gboolean
muster_backup_metadata_read (MusterStorage *storage, const char *path, MusterBackupMetadata *self,
                             GError **error)
{
  MusterStorageInfo info;

  if (!muster_storage_look (storage, path, &info, error))
    return FALSE;
  if (info.size > MOST_SIZE)
    return refuse (path, error);
  g_autoptr (GBytes) bytes = muster_storage_read (storage, path, error);

  return bytes && muster_backup_metadata_parse (path, bytes, self, error);
}

gboolean
muster_backup_metadata_write (MusterStorage *storage, const char *path,
                              const MusterBackupMetadata *self, GError **error)
{
  g_autofree char *text = muster_backup_metadata_print (self);

  return muster_storage_publish (storage, path, text, strlen (text), error);
}
