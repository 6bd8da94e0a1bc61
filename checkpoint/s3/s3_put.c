// SPDX-License-Identifier: Apache-2.0
/* Objects that one request writes, and conditions on the version that they replace. A store that
 * ignores conditions is found out once for each bucket; there the version is compared before the
 * write, which is weaker. */
#include "base/error.h"
#include "base/log_private.h"
#include "checkpoint/s3/s3_private.h"
#include "checkpoint/store/storage_failure_private.h"

#include <string.h>

/* An ETag that no object has. */
#define NO_ETAG "\"00000000000000000000000000000000-0\""

/* Sends one PUT; the caller clears answer. */
static gboolean
put_once (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, const void *data,
          gsize size, const char *mark, const char *condition, MusterS3Answer *answer,
          GError **error)
{
  g_autofree char *header = g_strconcat (MUSTER_S3_MARK ":", mark, NULL);
  const MusterS3Request request = {
      .operation = "PutObject",
      .path = path,
      .method = "PUT",
      .uri = uri,
      .headers = {"content-type:application/octet-stream", header, condition},
      .body = data,
      .size = size};
  return muster_s3_request (self->client, &request, &self->bound, answer, error);
}

static gboolean
ask_for_head (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, gboolean has_body,
              MusterS3Answer *answer, GError **error)
{
  guint8 first;
  const MusterS3Request request = {.operation = "HeadObject",
                                   .path = path,
                                   .method = has_body ? "GET" : "HEAD",
                                   .uri = uri,
                                   .sink = has_body ? &first : NULL,
                                   .sink_size = has_body ? sizeof first : 0};
  muster_s3_answer_clear (answer);
  return muster_s3_request (self->client, &request, &self->bound, answer, error);
}

/* A failed HEAD has no body, so that its cause is unknown. The same request as GET has one. If
 * the object exists but is empty, HEAD is sent again. */
gboolean
muster_s3_head (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                MusterS3Answer *answer, GError **error)
{
  for (guint i = 0;; i++) {
    g_autoptr (GError) of_head = NULL, of_get = NULL;
    if (ask_for_head (self, path, uri, FALSE, answer, &of_head))
      return TRUE;
    const gboolean is_mute = answer->is_mute;
    if (is_mute && ask_for_head (self, path, uri, TRUE, answer, &of_get))
      return TRUE;
    if (is_mute && i == 0 && g_strcmp0 (answer->code, "InvalidRange") == 0)
      continue;
    GError **why = is_mute ? &of_get : &of_head;
    g_propagate_error (error, g_steal_pointer (why));
    return FALSE;
  }
}

gboolean
muster_s3_is_own (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, const char *mark)
{
  g_auto (MusterS3Answer) answer = {0};
  return muster_s3_head (self, path, uri, &answer, NULL) && g_strcmp0 (answer.mark, mark) == 0;
}

static void
remove_probe (MusterS3Storage *self, const char *path, const MusterS3Uri *probe)
{
  g_auto (MusterS3Answer) answer = {0};
  const MusterS3Request request = {
      .operation = "DeleteObject", .path = path, .method = "DELETE", .uri = probe};
  (void)muster_s3_request (self->client, &request, &self->bound, &answer, NULL);
}

static void
warn_ignored (MusterS3Storage *self, const char *bucket)
{
  g_autofree char *store = muster_s3_config_describe (self->client->config);
  muster_log (G_LOG_LEVEL_WARNING, "unconditional-store", "MUSTER_BUCKET", bucket, "MESSAGE",
              "%s ignores If-Match: two chiefs that write to '" MUSTER_S3_SCHEME "%s' at the same "
              "time may overwrite each other's changes (docs/object-stores.md)",
              store, bucket);
}

/* Finds out, once for each bucket, whether conditions are observed: it writes a new name on the
 * condition of a version that no object has. A store that observes conditions refuses, and nothing
 * is written. */
static gboolean
find_out (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, GError **error)
{
  g_autofree char *unique = g_uuid_string_random ();
  const char *slash = strrchr (uri->key, '/');
  g_autofree char *key =
      g_strdup_printf ("%.*s.muster-conditions-%s", slash != NULL ? (int)(slash - uri->key + 1) : 0,
                       uri->key, unique);
  const MusterS3Uri probe = {uri->bucket, key};
  g_auto (MusterS3Answer) answer = {0};
  g_autoptr (GError) why = NULL;
  const gboolean is_written =
      put_once (self, path, &probe, "", 0, unique, "if-match:" NO_ETAG, &answer, &why);
  const gboolean is_heeded = g_strcmp0 (answer.code, "PreconditionFailed") == 0 ||
                             g_strcmp0 (answer.code, "NoSuchKey") == 0;
  if (is_written)
    remove_probe (self, path, &probe);
  if (!is_written && !is_heeded && g_strcmp0 (answer.code, "NotImplemented") != 0) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  muster_s3_client_set_conditions (self->client, uri->bucket,
                                   is_heeded ? MUSTER_S3_HEEDED : MUSTER_S3_IGNORED);
  if (!is_heeded)
    warn_ignored (self, uri->bucket);
  return TRUE;
}

static gboolean
fail_changed (const char *path, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_ABORTED,
                      "'%s': another writer has changed it; read it again", path);
}

/* Compares the version without conditions: another writer may still come between this and the
 * write. */
static gboolean
check_version (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, const char *version,
               GError **error)
{
  g_auto (MusterS3Answer) answer = {0};
  g_autoptr (GError) why = NULL;
  const gboolean is_there = muster_s3_head (self, path, uri, &answer, &why);
  if (!is_there && !muster_storage_failure_is_absent (why)) {
    g_propagate_error (error, g_steal_pointer (&why));
    return FALSE;
  }
  return g_strcmp0 (is_there ? answer.etag : "", version) == 0 || fail_changed (path, error);
}

gboolean
muster_s3_condition (MusterS3Storage *self, const char *path, const MusterS3Uri *uri,
                     const char *version, char **header, GError **error)
{
  *header = NULL;
  if (version == NULL)
    return TRUE;
  if (muster_s3_client_conditions (self->client, uri->bucket) == MUSTER_S3_UNKNOWN &&
      !find_out (self, path, uri, error))
    return FALSE;
  if (muster_s3_client_conditions (self->client, uri->bucket) == MUSTER_S3_IGNORED)
    return check_version (self, path, uri, version, error);
  *header =
      *version == '\0' ? g_strdup ("if-none-match:*") : g_strconcat ("if-match:", version, NULL);
  return TRUE;
}

/* Describes a lost race, also if the object was removed in the meantime. After an attempt whose
 * answer was lost, this writer itself may have won. (transfer full) */
static char *
lose_race (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, const char *mark,
           gboolean is_unsure, GError **error)
{
  g_auto (MusterS3Answer) now = {0};
  if (is_unsure && muster_s3_head (self, path, uri, &now, NULL) && g_strcmp0 (now.mark, mark) == 0)
    return g_steal_pointer (&now.etag);
  fail_changed (path, error);
  return NULL;
}

char *
muster_s3_put (MusterS3Storage *self, const char *path, const MusterS3Uri *uri, const void *data,
               gsize size, const char *version, GError **error)
{
  g_autofree char *mark = g_uuid_string_random (), *condition = NULL;
  g_autoptr (GError) why = NULL;
  g_auto (MusterS3Answer) answer = {0};
  if (!muster_s3_condition (self, path, uri, version, &condition, error))
    return NULL;
  if (put_once (self, path, uri, data, size, mark, condition, &answer, &why))
    return answer.etag != NULL ? g_steal_pointer (&answer.etag) : g_strdup ("");
  const gboolean is_changed =
      g_strcmp0 (answer.code, "PreconditionFailed") == 0 || muster_storage_failure_is_absent (why);
  if (condition != NULL && is_changed)
    return lose_race (self, path, uri, mark, answer.is_unsure, error);
  g_propagate_error (error, g_steal_pointer (&why));
  return NULL;
}
