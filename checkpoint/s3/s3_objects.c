// SPDX-License-Identifier: Apache-2.0
/* Operations on names: list a directory, remove and copy objects. A copy runs in the store, in
 * parts if it is large; small objects pass through this process if the store can't copy. */
#include "base/error.h"
#include "checkpoint/s3/s3_private.h"

#include <string.h>

/* A page of a list has up to 1,000 names, each of up to 1,024 bytes that take three in a URL. */
#define LIST_TEXT_MAX ((gsize)8 << 20)

/* Maximum number of names in a directory, and of pages of a list. */
#define NAMES_MAX 1000000
#define LISTS_MAX 10000

/* Maximum size of a copy by one request, and of one that may pass through here instead. */
#define COPY_MAX   ((guint64)5 << 30)
#define COPY_SMALL ((guint64)1 << 20)

gboolean
muster_s3_object_uri (const char *path, MusterS3Uri *uri, GError **error)
{
  if (!muster_s3_uri_parse (path, uri, error))
    return FALSE;
  if (*uri->key != '\0')
    return TRUE;
  muster_s3_uri_clear (uri);
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid path '%s': it names a bucket; use s3://BUCKET/NAME", path);
}

MusterS3Xml *
muster_s3_ask_list (MusterS3Storage *self, const char *operation, const char *path,
                    const MusterS3Uri *uri, const char *query, const char *root, GError **error)
{
  g_auto (MusterS3Answer) answer = {0};
  const MusterS3Request request = {.operation = operation,
                                   .path = path,
                                   .method = "GET",
                                   .uri = uri,
                                   .is_of_bucket = TRUE,
                                   .query = query,
                                   .text_max = LIST_TEXT_MAX,
                                   .root = root};
  return muster_s3_request (self->client, &request, &self->bound, &answer, error)
             ? g_steal_pointer (&answer.xml)
             : NULL;
}

gboolean
muster_s3_fail_cut_list (const char *directory, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INTERNAL,
                      "'%s': the store cut its list and didn't say where the list goes on; "
                      "update the store",
                      directory);
}

static MusterS3Xml *
list_page (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, const char *prefix,
           const char *token, GError **error)
{
  const char *const pairs[][2] = {
      {"continuation-token", token},
      {"delimiter", "/"},
      {"encoding-type", "url"},
      {"list-type", "2"},
      {"prefix", prefix},
  };
  g_autofree char *query = muster_s3_query (pairs, G_N_ELEMENTS (pairs));
  return muster_s3_ask_list (self, "ListObjectsV2", path, uri, query, "ListBucketResult", error);
}

/* Adds the names in the directory, without a '/' at the end. */
static void
add_names (GHashTable *names, const GPtrArray *keys, const char *prefix)
{
  const gsize n = strlen (prefix);
  for (guint i = 0; i < keys->len; i++) {
    const char *key = keys->pdata[i];
    if (!g_str_has_prefix (key, prefix))
      continue;
    char *name = g_strndup (key + n, strcspn (key + n, "/"));
    if (*name != '\0')
      g_hash_table_add (names, name);
    else
      g_free (name); /* some tools create an object for the directory itself */
  }
}

static int
compare_names (gconstpointer a, gconstpointer b)
{
  return strcmp (*(const char *const *)a, *(const char *const *)b);
}

static char **
sort_names (GHashTable *names)
{
  g_autoptr (GPtrArray) sorted = g_ptr_array_new_null_terminated (0, g_free, TRUE);
  GHashTableIter iter;
  gpointer name;
  g_hash_table_iter_init (&iter, names);
  while (g_hash_table_iter_next (&iter, &name, NULL)) {
    g_ptr_array_add (sorted, name);
    g_hash_table_iter_steal (&iter);
  }
  g_ptr_array_sort (sorted, compare_names);
  return (char **)g_ptr_array_free (g_steal_pointer (&sorted), FALSE);
}

char **
muster_s3_list (MusterS3Storage *self, const char *directory, GError **error)
{
  g_auto (MusterS3Uri) uri = {0};
  g_autoptr (GHashTable) names = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  g_autofree char *token = NULL;
  if (!muster_s3_uri_parse (directory, &uri, error))
    return NULL;
  g_autofree char *prefix = muster_s3_uri_prefix (&uri);
  for (guint i = 0; i < LISTS_MAX && g_hash_table_size (names) <= NAMES_MAX; i++) {
    g_autoptr (MusterS3Xml) page = list_page (self, directory, &uri, prefix, token, error);
    if (page == NULL)
      return NULL;
    add_names (names, page->keys, prefix);
    add_names (names, page->prefixes, prefix);
    if (!page->is_truncated)
      return sort_names (names);
    if (page->next_token == NULL) {
      muster_s3_fail_cut_list (directory, error);
      return NULL;
    }
    g_free (token);
    token = g_steal_pointer (&page->next_token);
  }
  muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
               "'%s': it has more than %d names; use a directory of its own for checkpoints",
               directory, NAMES_MAX);
  return NULL;
}

gboolean
muster_s3_remove (MusterS3Storage *self, const char *path, GError **error)
{
  g_auto (MusterS3Uri) uri = {0};
  g_autoptr (GError) why = NULL;
  g_auto (MusterS3Answer) answer = {0};
  if (!muster_s3_uri_parse (path, &uri, error))
    return FALSE;
  if (*uri.key == '\0')
    return TRUE; /* buckets stay */
  const MusterS3Request request = {
      .operation = "DeleteObject", .path = path, .method = "DELETE", .uri = &uri};
  if (muster_s3_request (self->client, &request, &self->bound, &answer, &why) ||
      g_error_matches (why, G_FILE_ERROR, G_FILE_ERROR_NOENT))
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

static gboolean
copy_in_store (MusterS3Storage *self, const MusterS3Uri *source, const char *to,
               const MusterS3Uri *target, GError **error)
{
  g_autofree char *mark = g_uuid_string_random ();
  MusterS3Upload upload;
  if (!muster_s3_upload_begin (self, to, target, mark, FALSE, &upload, error))
    return FALSE;
  g_autofree char *plain = g_strdup_printf ("%s/%s", source->bucket, source->key);
  g_autofree char *encoded = muster_s3_encode (plain, TRUE);
  g_autoptr (GPtrArray) parts = g_ptr_array_new_with_free_func (g_free);
  char *part = muster_s3_upload_copy (self, to, target, &upload, 1, encoded, error);
  if (part != NULL)
    g_ptr_array_add (parts, part);
  const gboolean is_copied =
      part != NULL && muster_s3_upload_complete (self, to, target, &upload, mark, parts, error);
  if (!is_copied)
    muster_s3_upload_abort_quietly (self, to, target, &upload);
  g_free (upload.id);
  return is_copied;
}

static gboolean
pass_bytes (MusterS3Storage *self, MusterStorageInput *input, guint64 size, MusterStorageFile *file,
            GError **error)
{
  const gsize most = 8 << 20;
  g_autofree guint8 *buffer = g_malloc (MAX (1, MIN (most, size)));
  for (guint64 at = 0; at < size;) {
    const gssize n = muster_s3_read_at (self, input, at, buffer, most, error);
    if (n <= 0 || !muster_s3_append (self, file, buffer, (gsize)n, error))
      return FALSE;
    at += (guint64)n;
  }
  return TRUE;
}

static gboolean
copy_through_here (MusterS3Storage *self, MusterStorageInput *input, guint64 size, const char *to,
                   GError **error)
{
  MusterStorageFile *file = muster_s3_create (self, to, error);
  if (file == NULL || !muster_s3_reserve (self, file, size, error) ||
      !pass_bytes (self, input, size, file, error)) {
    if (file != NULL)
      muster_s3_abandon (self, file);
    return FALSE;
  }
  return muster_s3_close (self, file, error);
}

gboolean
muster_s3_copy (MusterS3Storage *self, const char *from, const char *to, GError **error)
{
  g_auto (MusterS3Uri) source = {0}, target = {0};
  guint64 size;
  if (!muster_s3_object_uri (from, &source, error) || !muster_s3_object_uri (to, &target, error))
    return FALSE;
  MusterStorageInput *input = muster_s3_open (self, from, &size, error);
  if (input == NULL)
    return FALSE;
  const gboolean is_copied = size > COPY_SMALL && size <= COPY_MAX
                                 ? copy_in_store (self, &source, to, &target, error)
                                 : copy_through_here (self, input, size, to, error);
  muster_s3_close_input (input);
  return is_copied;
}
