// SPDX-License-Identifier: Apache-2.0
/* Uploads in parts: begin, send or copy a part, complete, abort. What killed writers left is
 * found by a list of uploads and aborted (muster_s3_sweep ()). */
#include "base/crc32c_private.h"
#include "base/error.h"
#include "checkpoint/s3/s3_private.h"

#include <string.h>

/* Timeout of an abort after a failed operation. A sweep finds what it leaves. */
#define ABORT_US (2 * MUSTER_SECOND)

/* Maximum number of pages of a list of uploads. */
#define LISTS_MAX 1000

static gboolean
begin (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, const char *mark,
       gboolean wants_sums, MusterS3Answer *answer, GError **error)
{
  g_autofree char *header = mark != NULL ? g_strconcat (MUSTER_S3_MARK ":", mark, NULL) : NULL;
  const char *sums = "x-amz-checksum-algorithm:CRC32C";
  const MusterS3Request request = {.operation = "CreateMultipartUpload",
                                   .path = path,
                                   .method = "POST",
                                   .uri = uri,
                                   .query = "uploads=",
                                   .headers = {"content-type:application/octet-stream",
                                               wants_sums ? sums : header,
                                               wants_sums ? header : NULL},
                                   .root = "InitiateMultipartUploadResult"};
  return muster_s3_request (self->client, &request, &self->bound, answer, error);
}

/* A store that checks sums confirms it in its answer. One that doesn't know them ignores the
 * header, or refuses it as not implemented. */
gboolean
muster_s3_upload_begin (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                        const char *mark, gboolean wants_sums, MusterS3Upload *upload,
                        GError **error)
{
  const gboolean may_have_sums = wants_sums && muster_s3_config_is_encrypted (self->client->config);
  g_auto (MusterS3Answer) answer = {0};
  g_autoptr (GError) why = NULL;
  gboolean is_begun = begin (self, path, uri, mark, may_have_sums, &answer, &why);
  if (!is_begun && may_have_sums && g_strcmp0 (answer.code, "NotImplemented") == 0) {
    g_clear_error (&why);
    muster_s3_answer_clear (&answer);
    is_begun = begin (self, path, uri, mark, FALSE, &answer, &why);
  }
  if (!is_begun) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  if (answer.xml->upload_id == NULL)
    return muster_fail (error, MUSTER_ERROR_INTERNAL,
                        "'%s': the store began an upload without a name", path);
  muster_s3_client_add_upload (self->client, answer.xml->upload_id);
  *upload =
      (MusterS3Upload){g_steal_pointer (&answer.xml->upload_id), may_have_sums && answer.has_sums};
  return TRUE;
}

static char *
query_part (const MusterS3Upload *upload, guint number)
{
  g_autofree char *part = g_strdup_printf ("%u", number);
  const char *const pairs[][2] = {{"partNumber", part}, {"uploadId", upload->id}};
  return muster_s3_query (pairs, G_N_ELEMENTS (pairs));
}

/* (transfer full) */
static char *
describe_part (const char *path, const char *etag, const char *sum, GError **error)
{
  if (etag == NULL) {
    muster_fail (error, MUSTER_ERROR_INTERNAL, "'%s': the store gave a part no ETag", path);
    return NULL;
  }
  return sum == NULL ? g_markup_printf_escaped ("<ETag>%s</ETag>", etag)
                     : g_markup_printf_escaped (
                           "<ETag>%s</ETag><ChecksumCRC32C>%s</ChecksumCRC32C>", etag, sum);
}

/* Encodes the sum in base64, the highest byte first. (transfer full) */
static char *
sum_bytes (const void *data, gsize size)
{
  const guint32 sum = GUINT32_TO_BE (muster_crc32c_extend (0, data, size));
  return g_base64_encode ((const guchar *)&sum, sizeof sum);
}

char *
muster_s3_upload_part (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                       const MusterS3Upload *upload, guint number, const void *data, gsize size,
                       GError **error)
{
  g_autofree char *query = query_part (upload, number);
  g_autofree char *sum = upload->has_sums ? sum_bytes (data, size) : NULL;
  g_autofree char *header = sum != NULL ? g_strconcat ("x-amz-checksum-crc32c:", sum, NULL) : NULL;
  g_auto (MusterS3Answer) answer = {0};
  const MusterS3Request request = {.operation = "UploadPart",
                                   .path = path,
                                   .method = "PUT",
                                   .uri = uri,
                                   .query = query,
                                   .headers = {header},
                                   .body = data,
                                   .size = size,
                                   .is_unsigned = upload->has_sums};
  return muster_s3_request (self->client, &request, &self->bound, &answer, error)
             ? describe_part (path, answer.etag, sum, error)
             : NULL;
}

char *
muster_s3_upload_copy (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                       const MusterS3Upload *upload, guint number, const char *source,
                       GError **error)
{
  g_autofree char *query = query_part (upload, number);
  g_autofree char *header = g_strconcat ("x-amz-copy-source:", source, NULL);
  g_auto (MusterS3Answer) answer = {0};
  const MusterS3Request request = {.operation = "UploadPartCopy",
                                   .path = path,
                                   .method = "PUT",
                                   .uri = uri,
                                   .query = query,
                                   .headers = {header},
                                   .root = "CopyPartResult"};
  return muster_s3_request (self->client, &request, &self->bound, &answer, error)
             ? describe_part (path, answer.xml->etag, NULL, error)
             : NULL;
}

static char *
describe_parts (GPtrArray *parts)
{
  GString *xml = g_string_new ("<CompleteMultipartUpload "
                               "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
  for (guint i = 0; i < parts->len; i++)
    g_string_append_printf (xml, "<Part><PartNumber>%u</PartNumber>%s</Part>", i + 1,
                            (const char *)parts->pdata[i]);
  g_string_append (xml, "</CompleteMultipartUpload>");
  return g_string_free (xml, FALSE);
}

/* Returns TRUE if the object exists, or the upload doesn't, after a request whose answer was
 * lost: that request may have succeeded. */
static gboolean
was_completed (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, const char *mark,
               const MusterS3Answer *answer)
{
  const gboolean may_be =
      answer->is_unsure && (g_strcmp0 (answer->code, "NoSuchUpload") == 0 ||
                            g_strcmp0 (answer->code, "PreconditionFailed") == 0);
  return may_be && mark != NULL && muster_s3_is_own (self, path, uri, mark);
}

gboolean
muster_s3_upload_complete (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                           const MusterS3Upload *upload, const char *mark, GPtrArray *parts,
                           GError **error)
{
  const char *const pairs[][2] = {{"uploadId", upload->id}};
  g_autofree char *query = muster_s3_query (pairs, G_N_ELEMENTS (pairs));
  g_autofree char *body = describe_parts (parts), *condition = NULL;
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
                                   .root = "CompleteMultipartUploadResult"};
  if (muster_s3_request (self->client, &request, &self->bound, &answer, &why) ||
      was_completed (self, path, uri, mark, &answer)) {
    muster_s3_client_remove_upload (self->client, upload->id);
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
  if (muster_s3_request (client, &request, bound, &answer, &why) ||
      g_strcmp0 (answer.code, "NoSuchUpload") == 0)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&why));
  return FALSE;
}

void
muster_s3_upload_abort_quietly (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                                const MusterS3Upload *upload)
{
  MusterClock *clock = muster_system_clock ();
  const MusterS3Bound bound = {muster_deadline_after (muster_clock_now_us (clock), ABORT_US), clock,
                               NULL};
  (void)abort_upload (self->client, path, uri, upload->id, &bound,
                      NULL); /* a sweep removes what is left */
  muster_s3_client_remove_upload (self->client, upload->id);
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
  return muster_s3_ask_list (self, "ListMultipartUploads", path, uri, query,
                             "ListMultipartUploadsResult", error);
}

/* An upload of unknown age counts as young. */
static gboolean
was_begun_before (const MusterS3Pending *upload, gint64 before_us)
{
  g_autoptr (GDateTime) begun =
      upload->initiated != NULL ? g_date_time_new_from_iso8601 (upload->initiated, NULL) : NULL;
  return before_us == G_MAXINT64 ||
         (begun != NULL && g_date_time_to_unix (begun) < before_us / MUSTER_SECOND);
}

/* Aborts the uploads of the directory itself that other processes began. */
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
    if (!list->is_truncated)
      return TRUE;
    if (list->next_key_marker == NULL)
      return muster_s3_fail_cut_list (directory, error);
  }
  return muster_fail (error, MUSTER_ERROR_INTERNAL, "'%s': the list of uploads has no end",
                      directory);
}
