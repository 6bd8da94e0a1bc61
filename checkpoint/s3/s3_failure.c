// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/s3/s3_failure.h"

#include "base/error.h"

#include <string.h>

/* Of a store's text in an error. */
#define MESSAGE_MAX 200

static const struct {
  const char *code;
  MusterS3Class class;
} classes[] = {
    {"SlowDown", MUSTER_S3_THROTTLED},
    {"ServiceUnavailable", MUSTER_S3_THROTTLED},
    {"TooManyRequests", MUSTER_S3_THROTTLED},
    {"RequestLimitExceeded", MUSTER_S3_THROTTLED},
    {"InternalError", MUSTER_S3_FAILED},
    {"OperationAborted", MUSTER_S3_FAILED},
    {"ConditionalRequestConflict", MUSTER_S3_FAILED},
    {"RequestTimeout", MUSTER_S3_LOST},
    {"IncompleteBody", MUSTER_S3_LOST},
    {"BadDigest", MUSTER_S3_DAMAGED},
    {"InvalidDigest", MUSTER_S3_DAMAGED},
    {"XAmzContentSHA256Mismatch", MUSTER_S3_DAMAGED},
    {"XAmzContentChecksumMismatch", MUSTER_S3_DAMAGED},
    {"ExpiredToken", MUSTER_S3_EXPIRED},
    {"ExpiredTokenException", MUSTER_S3_EXPIRED},
    {"TokenRefreshRequired", MUSTER_S3_EXPIRED},
};

static MusterS3Class
class_of_status (long status)
{
  switch (status) {
  case 429:
  case 503:
    return MUSTER_S3_THROTTLED;
  case 408:
    return MUSTER_S3_LOST;
  case 500:
  case 502:
  case 504:
    return MUSTER_S3_FAILED;
  default:
    return status / 100 == 2 ? MUSTER_S3_SUCCEEDED : MUSTER_S3_FINAL;
  }
}

MusterS3Class
muster_s3_class_of (const MusterHttpAnswer *answer, const MusterS3Xml *xml)
{
  switch (answer->outcome) {
  case MUSTER_HTTP_UNREACHABLE:
  case MUSTER_HTTP_LOST:
    return MUSTER_S3_LOST;
  case MUSTER_HTTP_STALLED:
    return MUSTER_S3_STALLED;
  case MUSTER_HTTP_LATE:
    return MUSTER_S3_LATE;
  case MUSTER_HTTP_CANCELLED:
    return MUSTER_S3_CANCELLED;
  case MUSTER_HTTP_UNEXPECTED:
  case MUSTER_HTTP_IMPOSSIBLE:
    return MUSTER_S3_FINAL;
  case MUSTER_HTTP_ANSWERED:
    break;
  }
  for (gsize i = 0; xml != NULL && xml->code != NULL && i < G_N_ELEMENTS (classes); i++)
    if (strcmp (xml->code, classes[i].code) == 0)
      return classes[i].class;
  const MusterS3Class class = class_of_status (answer->status);
  /* Completing an upload and copying can fail after "200 OK". */
  return class == MUSTER_S3_SUCCEEDED && xml != NULL && xml->code != NULL ? MUSTER_S3_FINAL : class;
}

/* A store's text, in one short line. */
static char *
tidy (const char *text)
{
  g_autofree char *valid = g_utf8_make_valid (text, -1);
  g_autofree char *end = g_utf8_strlen (valid, -1) > MESSAGE_MAX
                             ? g_utf8_substring (valid, 0, MESSAGE_MAX)
                             : g_strdup (valid);
  for (char *at = end; *at != '\0'; at++)
    if (g_ascii_iscntrl (*at))
      *at = ' ';
  return g_steal_pointer (&end);
}

char *
muster_s3_failure_describe (const MusterHttpAnswer *answer, const MusterS3Xml *xml)
{
  switch (answer->outcome) {
  case MUSTER_HTTP_UNREACHABLE:
    return g_strdup_printf ("no connection (%s)", answer->detail);
  case MUSTER_HTTP_LOST:
    return g_strdup_printf ("the connection was lost (%s)", answer->detail);
  case MUSTER_HTTP_STALLED:
    return g_strdup_printf ("the transfer stalled (%s)", answer->detail);
  case MUSTER_HTTP_LATE:
    return g_strdup ("no answer");
  case MUSTER_HTTP_CANCELLED:
    return g_strdup ("cancelled");
  case MUSTER_HTTP_UNEXPECTED:
  case MUSTER_HTTP_IMPOSSIBLE:
    return g_strdup (answer->detail);
  case MUSTER_HTTP_ANSWERED:
    break;
  }
  if (xml == NULL || xml->code == NULL)
    return g_strdup_printf ("status %ld", answer->status);
  g_autofree char *code = tidy (xml->code);
  g_autofree char *message = tidy (xml->message != NULL ? xml->message : "");
  return g_strdup_printf ("%ld %s%s%s", answer->status, code, *message != '\0' ? ": " : "",
                          message);
}

/* What a code of S3 means to the user: the error's code, its cause and its remedy. "%s" stands for
 * the bucket, the store, or where the credentials are from. */
typedef enum { OF_NOTHING, OF_BUCKET, OF_STORE, OF_CREDENTIALS } Of;

static const struct {
  const char *code;
  MusterError error;
  Of of;
  const char *text;
} meanings[] = {
    {"NoSuchBucket", MUSTER_ERROR_INVALID_ARGUMENT, OF_BUCKET,
     "there is no bucket '%s'; create it, or fix the path or the endpoint"},
    {"AccessDenied", MUSTER_ERROR_PERMISSION_DENIED, OF_CREDENTIALS,
     "the credentials (from %s) don't have this right; extend their policy"},
    {"AllAccessDisabled", MUSTER_ERROR_PERMISSION_DENIED, OF_BUCKET,
     "access to the bucket '%s' is disabled"},
    {"InvalidAccessKeyId", MUSTER_ERROR_UNAUTHENTICATED, OF_CREDENTIALS,
     "the store doesn't know the access key (from %s); fix the credentials or the endpoint"},
    {"SignatureDoesNotMatch", MUSTER_ERROR_UNAUTHENTICATED, OF_CREDENTIALS,
     "the secret access key (from %s) isn't that of the access key; fix the credentials"},
    {"InvalidToken", MUSTER_ERROR_UNAUTHENTICATED, OF_CREDENTIALS,
     "the session token (from %s) is invalid; fix the credentials"},
    {"ExpiredToken", MUSTER_ERROR_UNAUTHENTICATED, OF_CREDENTIALS,
     "the credentials (from %s) have expired; renew them"},
    {"ExpiredTokenException", MUSTER_ERROR_UNAUTHENTICATED, OF_CREDENTIALS,
     "the credentials (from %s) have expired; renew them"},
    {"TokenRefreshRequired", MUSTER_ERROR_UNAUTHENTICATED, OF_CREDENTIALS,
     "the credentials (from %s) have expired; renew them"},
    {"RequestTimeTooSkewed", MUSTER_ERROR_UNAUTHENTICATED, OF_STORE,
     "this machine's clock differs too much from that of %s; set it"},
    {"AuthorizationHeaderMalformed", MUSTER_ERROR_INVALID_ARGUMENT, OF_BUCKET,
     "the bucket '%s' is in another region; set AWS_REGION"},
    {"PermanentRedirect", MUSTER_ERROR_INVALID_ARGUMENT, OF_BUCKET,
     "the bucket '%s' is in another region; set AWS_REGION"},
    {"TemporaryRedirect", MUSTER_ERROR_INVALID_ARGUMENT, OF_BUCKET,
     "the bucket '%s' is in another region; set AWS_REGION"},
    {"PreconditionFailed", MUSTER_ERROR_ABORTED, OF_NOTHING,
     "another writer has changed it; read it again"},
    {"NoSuchUpload", MUSTER_ERROR_ABORTED, OF_NOTHING,
     "another process has aborted the upload; write it again"},
    {"NotImplemented", MUSTER_ERROR_UNIMPLEMENTED, OF_STORE, "%s doesn't offer it"},
    {"EntityTooLarge", MUSTER_ERROR_RESOURCE_EXHAUSTED, OF_STORE, "it is larger than %s accepts"},
    {"QuotaExceeded", MUSTER_ERROR_RESOURCE_EXHAUSTED, OF_BUCKET,
     "the quota of the bucket '%s' is used up"},
    {"XMinioStorageFull", MUSTER_ERROR_RESOURCE_EXHAUSTED, OF_STORE, "%s is full"},
};

/* What an answer without XML says, as one to HEAD. */
static const char *
code_of_status (long status)
{
  switch (status) {
  case 301:
  case 307:
    return "PermanentRedirect";
  case 401:
  case 403:
    return "AccessDenied";
  case 412:
    return "PreconditionFailed";
  case 501:
    return "NotImplemented";
  default:
    return "";
  }
}

static char *
fill (MusterS3Client *client, const MusterS3Request *request, Of of, const char *text)
{
  g_autofree char *value = of == OF_BUCKET  ? g_strdup (request->uri->bucket)
                           : of == OF_STORE ? muster_s3_config_describe (client->config)
                           : of == OF_CREDENTIALS
                               ? muster_s3_credentials_describe (client->credentials)
                               : NULL;
  const char *place = strstr (text, "%s");
  return value == NULL || place == NULL
             ? g_strdup (text)
             : g_strdup_printf ("%.*s%s%s", (int)(place - text), text, value, place + 2);
}

/* The region that the store names. */
static char *
find_region (const MusterHttpAnswer *answer, const MusterS3Xml *xml)
{
  const char *region = muster_http_header (answer, "x-amz-bucket-region");
  region = region != NULL ? region : xml != NULL ? xml->region : NULL;
  return region != NULL ? tidy (region) : NULL;
}

void
muster_s3_failure_set (MusterS3Client *client, const MusterS3Request *request,
                       const MusterHttpAnswer *answer, const MusterS3Xml *xml, GError **error)
{
  g_autofree char *what = muster_s3_failure_describe (answer, xml);
  const char *code = xml != NULL && xml->code != NULL ? xml->code : code_of_status (answer->status);
  if (answer->outcome == MUSTER_HTTP_ANSWERED && answer->status == 404 &&
      (strcmp (code, "NoSuchKey") == 0 || *code == '\0')) {
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "'%s': no such object", request->path);
    return;
  }
  for (gsize i = 0; answer->outcome == MUSTER_HTTP_ANSWERED && i < G_N_ELEMENTS (meanings); i++) {
    if (strcmp (code, meanings[i].code) != 0)
      continue;
    g_autofree char *cause = fill (client, request, meanings[i].of, meanings[i].text);
    g_autofree char *region =
        g_str_has_suffix (cause, "AWS_REGION") ? find_region (answer, xml) : NULL;
    muster_fail (error, meanings[i].error, "'%s': %s failed: %s%s%s (%s)", request->path,
                 request->operation, cause, region != NULL ? "=" : "", region != NULL ? region : "",
                 what);
    return;
  }
  if (answer->outcome == MUSTER_HTTP_IMPOSSIBLE)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s': %s failed: %s; fix the endpoint, or name the file of the store's "
                 "certificate authority in AWS_CA_BUNDLE",
                 request->path, request->operation, what);
  else
    muster_fail (error, MUSTER_ERROR_UNKNOWN, "'%s': %s failed: %s", request->path,
                 request->operation, what);
}
