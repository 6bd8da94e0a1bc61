// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/v1_files.h"

#include "checkpoint/format/leveldb_table.h"
#include "checkpoint/store/storage_private.h"

#include <string.h>

#define ANY_FILE "-\?\?\?\?\?-of-"

/* PREFIX with ANY_FILE and 00002: how many there are; 1 for another name. */
static gint
count_files (const char *prefix, gsize *stem)
{
  const char *at = g_strrstr (prefix, ANY_FILE);
  const char *digits = at != NULL ? at + strlen (ANY_FILE) : NULL;
  if (digits == NULL || strlen (digits) != 5 || strspn (digits, "0123456789") != 5)
    return 1;
  *stem = (gsize)(at - prefix);
  return (gint)g_ascii_strtoll (digits, NULL, 10);
}

char *
muster_v1_file (const char *prefix, int i)
{
  gsize stem = 0;
  const gint n = count_files (prefix, &stem);
  return stem == 0 ? g_strdup (prefix)
                   : g_strdup_printf ("%.*s-%05d-of-%05d", (int)stem, prefix, i, n);
}

int
muster_v1_count_files (const char *prefix)
{
  gsize stem;
  return count_files (prefix, &stem);
}

gboolean
muster_v1_is_there (MusterStorage *storage, const char *prefix)
{
  g_autofree char *path = muster_v1_file (prefix, 0);
  guint8 end[sizeof muster_table_magic];
  guint64 size = 0;
  if (g_str_has_suffix (path, ".index")) /* such a table, too */
    return FALSE;
  MusterStorageInput *input = muster_storage_open (storage, path, &size, NULL);
  if (input == NULL)
    return FALSE;
  const gboolean is_table = size >= sizeof end &&
                            muster_storage_read_at (storage, input, size - sizeof end, end,
                                                    sizeof end, NULL) == (gssize)sizeof end &&
                            memcmp (end, muster_table_magic, sizeof end) == 0;
  muster_storage_close_input (storage, input);
  return is_table;
}
