// SPDX-License-Identifier: Apache-2.0
/* Uploads in parts, and what is left of those that nobody completed. */
#include "base/error.h"
#include "checkpoint/s3/s3_private.h"

#include <string.h>

/* How long an abort may take after its operation has failed: what it leaves, a sweep finds. */
#define ABORT_US (2 * MUSTER_SECOND)

/* How many lists of uploads there may be. */
#define LISTS_MAX 1000

char *
muster_s3_upload_begin (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                        const char *mark, GError **error)
{
  g_autofree char *header = mark != NULL ? g_strconcat (MUSTER_S3_MARK ":", mark, NULL) : NULL;
  g_auto (MusterS3Answer) answer = {0};
  const MusterS3Request request = {.operation = "CreateMultipartUpload",
                                   .path = path,
                                   .method = "POST",
                                   .uri = uri,
                                   .query = "uploads=",
                                   .headers = {"content-type:application/octet-stream", header},
                                   .has_xml = TRUE};
  if (!muster_s3_request (self->client, &request, &self->bound, &answer, error))
    return NULL;
  if (answer.xml->upload_id == NULL) {
    muster_fail (error, MUSTER_ERROR_INTERNAL, "'%s': the store began an upload without a name",
                 path);
    return NULL;
  }
  muster_s3_client_add_upload (self->client, answer.xml->upload_id);
  return g_steal_pointer (&answer.xml->upload_id);
}

char *
muster_s3_upload_part (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                       const char *id, guint number, const void *data, gsize size,
                       const char *source, GError **error)
{
  g_autofree char *part = g_strdup_printf ("%u", number);
  const char *const pairs[][2] = {{"partNumber", part}, {"uploadId", id}};
  g_autofree char *query = muster_s3_query (pairs, G_N_ELEMENTS (pairs));
  g_autofree char *header =
      source != NULL ? g_strconcat ("x-amz-copy-source:", source, NULL) : NULL;
  g_auto (MusterS3Answer) answer = {0};
  const MusterS3Request request = {.operation = source != NULL ? "UploadPartCopy" : "UploadPart",
                                   .path = path,
                                   .method = "PUT",
                                   .uri = uri,
                                   .query = query,
                                   .headers = {header},
                                   .body = data,
                                   .size = size,
                                   .has_xml = source != NULL};
  if (!muster_s3_request (self->client, &request, &self->bound, &answer, error))
    return NULL;
  char **etag = source != NULL ? &answer.xml->etag : &answer.etag;
  if (*etag == NULL)
    muster_fail (error, MUSTER_ERROR_INTERNAL, "'%s': the store gave a part no ETag", path);
  return g_steal_pointer (etag);
}

static char *
describe_parts (GPtrArray *etags)
{
  GString *xml = g_string_new ("<CompleteMultipartUpload "
                               "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
  for (guint i = 0; i < etags->len; i++) {
    g_autofree char *etag = g_markup_escape_text (etags->pdata[i], -1);
    g_string_append_printf (xml, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>", i + 1,
                            etag);
  }
  g_string_append (xml, "</CompleteMultipartUpload>");
  return g_string_free (xml, FALSE);
}

/* An answer that says that it is there, or that the upload isn't, after one that was lost: then the
 * lost one may have been the success. */
static gboolean
was_completed (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, const char *mark,
               const MusterS3Answer *answer)
{
  const gboolean may_be = answer->is_unsure && (answer->status == 404 || answer->status == 412);
  return may_be && mark != NULL && muster_s3_is_own (self, path, uri, mark);
}

gboolean
muster_s3_upload_complete (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                           const char *id, const char *mark, GPtrArray *etags, GError **error)
{
  const char *const pairs[][2] = {{"uploadId", id}};
  g_autofree char *query = muster_s3_query (pairs, G_N_ELEMENTS (pairs));
  g_autofree char *body = describe_parts (etags), *condition = NULL;
  g_autoptr (GError) why = NULL;
  g_auto (MusterS3Answer) answer = {0};
  if (!muster_s3_condition (self, path, uri, "", &condition, error))
    return FALSE;
  const MusterS3Request request = {.operation = "CompleteMultipartUpload",
                                   .path = path,
                                   .method = "POST",
                                   .uri = uri,
                                   .query = query,
                                   .headers = {"content-type:application/xml", condition},
                                   .body = body,
                                   .size = strlen (body),
                                   .has_xml = TRUE};
  if (muster_s3_request (self->client, &request, &self->bound, &answer, &why) ||
      was_completed (self, path, uri, mark, &answer)) {
    muster_s3_client_remove_upload (self->client, id);
    return TRUE;
  }
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

static gboolean
abort_upload (MusterS3Client *client, const char *path, const MusterS3Uri *uri, const char *id,
              const MusterS3Bound *bound, GError **error)
{
  const char *const pairs[][2] = {{"uploadId", id}};
  g_autofree char *query = muster_s3_query (pairs, G_N_ELEMENTS (pairs));
  g_autoptr (GError) why = NULL;
  g_auto (MusterS3Answer) answer = {0};
  const MusterS3Request request = {.operation = "AbortMultipartUpload",
                                   .path = path,
                                   .method = "DELETE",
                                   .uri = uri,
                                   .query = query};
  if (muster_s3_request (client, &request, bound, &answer, &why) || answer.status == 404)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

void
muster_s3_upload_abort_quietly (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                                const char *id)
{
  MusterClock *clock = muster_system_clock ();
  const MusterS3Bound bound = {muster_deadline_after (muster_clock_now_us (clock), ABORT_US), clock,
                               NULL};
  (void)abort_upload (self->client, path, uri, id, &bound, NULL); /* it is left to a sweep */
  muster_s3_client_remove_upload (self->client, id);
}

static MusterS3Xml *
list_uploads (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, const char *prefix,
              const MusterS3Xml *before, GError **error)
{
  const char *const pairs[][2] = {
      {"encoding-type", "url"},
      {"key-marker", before != NULL ? before->next_key_marker : NULL},
      {"prefix", prefix},
      {"upload-id-marker", before != NULL ? before->next_upload_marker : NULL},
      {"uploads", ""},
  };
  g_autofree char *query = muster_s3_query (pairs, G_N_ELEMENTS (pairs));
  return muster_s3_ask_list (self, "ListMultipartUploads", path, uri, query, error);
}

/* One whose age isn't known is young. */
static gboolean
was_begun_before (const MusterS3Pending *upload, gint64 before_us)
{
  g_autoptr (GDateTime) begun =
      upload->initiated != NULL ? g_date_time_new_from_iso8601 (upload->initiated, NULL) : NULL;
  return before_us == G_MAXINT64 ||
         (begun != NULL && g_date_time_to_unix (begun) < before_us / MUSTER_SECOND);
}

/* Those of the directory itself, which this process hasn't begun. */
static gboolean
abort_listed (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, const char *prefix,
              const MusterS3Xml *list, gint64 before_us, GError **error)
{
  const gsize n = strlen (prefix);
  for (guint i = 0; i < list->uploads->len; i++) {
    const MusterS3Pending *upload = list->uploads->pdata[i];
    if (upload->id == NULL || upload->key == NULL || !g_str_has_prefix (upload->key, prefix) ||
        strchr (upload->key + n, '/') != NULL ||
        muster_s3_client_has_upload (self->client, upload->id) ||
        !was_begun_before (upload, before_us))
      continue;
    const MusterS3Uri object = {uri->bucket, upload->key};
    if (!abort_upload (self->client, path, &object, upload->id, &self->bound, error))
      return FALSE;
  }
  return TRUE;
}

gboolean
muster_s3_sweep (MusterS3Storage *self, const char *directory, gint64 before_us, GError **error)
{
  g_auto (MusterS3Uri) uri = {0};
  g_autoptr (MusterS3Xml) list = NULL;
  if (!muster_s3_uri_parse (directory, &uri, error))
    return FALSE;
  g_autofree char *prefix = muster_s3_uri_prefix (&uri);
  for (guint i = 0; i < LISTS_MAX; i++) {
    MusterS3Xml *next = list_uploads (self, directory, &uri, prefix, list, error);
    muster_s3_xml_free (list);
    list = next;
    if (list == NULL || !abort_listed (self, directory, &uri, prefix, list, before_us, error))
      return FALSE;
    if (!list->is_truncated || list->next_key_marker == NULL)
      return TRUE;
  }
  return muster_fail (error, MUSTER_ERROR_INTERNAL, "'%s': the list of uploads has no end",
                      directory);
}
