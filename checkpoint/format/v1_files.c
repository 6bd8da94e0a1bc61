// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/v1_files_private.h"

#include "checkpoint/format/leveldb_table_private.h"
#include "checkpoint/store/storage_private.h"

#include <string.h>

#define ANY_FILE "-\?\?\?\?\?-of-"
#define N_DIGITS 5

/* Returns how many files a name like PREFIX-?????-of-00002 stands for; 1 for another name. */
static gint
count_files (const char *prefix, gsize *stem)
{
  const char *at = g_strrstr (prefix, ANY_FILE);
  const char *digits = at != NULL ? at + strlen (ANY_FILE) : NULL;
  if (digits == NULL || strlen (digits) != N_DIGITS || strspn (digits, "0123456789") != N_DIGITS)
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

/* Returns TRUE if the file ends as a table does, but not for the index of a V2 checkpoint. */
static gboolean
is_table (MusterStorage *storage, const char *path)
{
  guint8 end[sizeof muster_table_magic];
  guint64 size = 0;
  if (g_str_has_suffix (path, ".index"))
    return FALSE;
  MusterStorageInput *input = muster_storage_open (storage, path, &size, NULL);
  if (input == NULL)
    return FALSE;
  const gboolean is_whole = size >= sizeof end &&
                            muster_storage_read_at (storage, input, size - sizeof end, end,
                                                    sizeof end, NULL) == (gssize)sizeof end &&
                            memcmp (end, muster_table_magic, sizeof end) == 0;
  muster_storage_close_input (storage, input);
  return is_whole;
}

static gboolean
is_file (MusterStorage *storage, const char *path)
{
  guint64 size;
  MusterStorageInput *input = muster_storage_open (storage, path, &size, NULL);
  if (input != NULL)
    muster_storage_close_input (storage, input);
  return input != NULL;
}

gboolean
muster_v1_is_there (MusterStorage *storage, const char *prefix)
{
  g_autofree char *first = muster_v1_file (prefix, 0);
  if (is_table (storage, first))
    return TRUE;
  gsize stem = strlen (prefix);
  const int n = count_files (prefix, &stem);
  g_autofree char *meta_graph = g_strdup_printf ("%.*s.meta", (int)stem, prefix);
  gboolean is_damaged = FALSE;
  for (int i = is_file (storage, meta_graph) ? 0 : n; i < n && !is_damaged; i++) {
    g_autofree char *path = muster_v1_file (prefix, i);
    is_damaged = is_file (storage, path);
  }
  return is_damaged;
}

char *
muster_v1_of_part (const char *path)
{
  const gsize n = strlen (path), n_end = strlen (ANY_FILE) + N_DIGITS;
  const char *end = n > n_end ? path + n - n_end : NULL;
  const char *of = end != NULL ? end + 1 + N_DIGITS : NULL;
  if (end == NULL || *end != '-' || strspn (end + 1, "0123456789") != N_DIGITS ||
      !g_str_has_prefix (of, "-of-") || strspn (of + strlen ("-of-"), "0123456789") != N_DIGITS)
    return NULL;
  g_autofree char *stem = g_strndup (path, (gsize)(end - path));
  return g_str_has_suffix (stem, ".data") /* of V2 */
             ? NULL
             : g_strconcat (stem, ANY_FILE, of + strlen ("-of-"), NULL);
}

/* --- those of a directory --- */

/* Returns the prefix of a file: "m-7" of "m-7", "m-7-?????-of-00002" of each of its parts; NULL for
 * other files. */
static char *
prefix_of (const char *file, GHashTable *files)
{
  g_autofree char *whole = muster_v1_of_part (file);
  const char *dash = strrchr (file, '-');
  g_autofree char *meta_graph = g_strconcat (file, ".meta", NULL);
  g_autofree char *index = g_strconcat (file, ".index", NULL);
  if (*file == '.' || strstr (file, ".data-") != NULL || g_hash_table_contains (files, index))
    return NULL;
  if (whole != NULL)
    return g_steal_pointer (&whole);
  const gboolean has_step = dash != NULL && dash[1] != '\0' &&
                            strspn (dash + 1, "0123456789") == strlen (dash + 1) &&
                            strstr (file, "-of-") == NULL;
  return has_step || g_hash_table_contains (files, meta_graph) ? g_strdup (file) : NULL;
}

char **
muster_v1_list (MusterStorage *storage, const char *directory, GError **error)
{
  g_auto (GStrv) names = muster_storage_list (storage, directory, error);
  g_autoptr (GHashTable) files = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GStrvBuilder) found = g_strv_builder_new ();
  g_autoptr (GHashTable) seen = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  if (names == NULL)
    return NULL;
  for (char **name = names; *name != NULL; name++)
    g_hash_table_add (files, *name);
  for (char **name = names; *name != NULL; name++) {
    g_autofree char *own = prefix_of (*name, files);
    g_autofree char *prefix = own != NULL ? g_build_filename (directory, own, NULL) : NULL;
    if (prefix != NULL && g_hash_table_add (seen, g_strdup (prefix)) &&
        muster_v1_is_there (storage, prefix))
      g_strv_builder_add (found, prefix);
  }
  return g_strv_builder_end (found);
}
