// SPDX-License-Identifier: Apache-2.0
/* What a failed request means. The class of an answer, by S3's code or by the status, decides
 * about retries; set_meaning () turns it into an error with cause and remedy. Texts of the store
 * are shortened, and secrets in them hidden. */
#include "checkpoint/s3/s3_failure_private.h"

#include "base/error.h"
#include "base/safe_text_private.h"
#include "checkpoint/s3/s3_origin_private.h"

#include <string.h>

/* Maximum length of a store's text in an error. */
#define MESSAGE_MAX 200

static const struct {
  const char *code;
  MusterS3Class class;
} classes[] = {
    /* AWS's tools treat these as throttling, whatever the status. */
    {"BandwidthLimitExceeded", MUSTER_S3_THROTTLED},
    {"EC2ThrottledException", MUSTER_S3_THROTTLED},
    {"LimitExceededException", MUSTER_S3_THROTTLED},
    {"PriorRequestNotComplete", MUSTER_S3_THROTTLED},
    {"ProvisionedThroughputExceededException", MUSTER_S3_THROTTLED},
    {"RequestLimitExceeded", MUSTER_S3_THROTTLED},
    {"RequestThrottled", MUSTER_S3_THROTTLED},
    {"RequestThrottledException", MUSTER_S3_THROTTLED},
    {"SlowDown", MUSTER_S3_THROTTLED},
    {"ThrottledException", MUSTER_S3_THROTTLED},
    {"Throttling", MUSTER_S3_THROTTLED},
    {"ThrottlingException", MUSTER_S3_THROTTLED},
    {"TooManyRequests", MUSTER_S3_THROTTLED},
    {"TooManyRequestsException", MUSTER_S3_THROTTLED},
    {"TransactionInProgressException", MUSTER_S3_THROTTLED},
    {"ServiceUnavailable", MUSTER_S3_THROTTLED},
    {"InternalError", MUSTER_S3_FAILED},
    {"OperationAborted", MUSTER_S3_FAILED},
    {"ConditionalRequestConflict", MUSTER_S3_FAILED},
    {"IDPCommunicationError", MUSTER_S3_FAILED}, /* the token service's */
    {"RequestTimeout", MUSTER_S3_LOST},
    {"RequestTimeoutException", MUSTER_S3_LOST},
    {"IncompleteBody", MUSTER_S3_LOST},
    {"BadDigest", MUSTER_S3_DAMAGED},
    {"InvalidDigest", MUSTER_S3_DAMAGED},
    {"XAmzContentSHA256Mismatch", MUSTER_S3_DAMAGED},
    {"XAmzContentChecksumMismatch", MUSTER_S3_DAMAGED},
    {"ExpiredToken", MUSTER_S3_EXPIRED},
    {"ExpiredTokenException", MUSTER_S3_EXPIRED},
    {"TokenRefreshRequired", MUSTER_S3_EXPIRED},
    {"InvalidAccessKeyId", MUSTER_S3_EXPIRED},
    {"InvalidToken", MUSTER_S3_EXPIRED},
    {"SignatureDoesNotMatch", MUSTER_S3_EXPIRED},
    {"XMinioStorageFull", MUSTER_S3_FINAL},
};

static MusterS3Class
class_of_status (long status)
{
  switch (status) {
  case 429:
  case 503:
  case 509:
    return MUSTER_S3_THROTTLED;
  case 408:
    return MUSTER_S3_LOST;
  case 501:
  case 505:
    return MUSTER_S3_FINAL;
  default:
    return status / 100 == 5 ? MUSTER_S3_FAILED : MUSTER_S3_FINAL;
  }
}

MusterS3Class
muster_s3_class_of_code (const char *code, long status)
{
  for (gsize i = 0; code != NULL && i < G_N_ELEMENTS (classes); i++)
    if (strcmp (code, classes[i].code) == 0)
      return classes[i].class;
  return class_of_status (status);
}

/* Returns the class of a response that isn't a success. A page in place of an object, or a
 * statement that nothing is there, disappears once the gateway has its route. */
static MusterS3Class
class_of_answer (const MusterS3Request *request, const MusterHttpAnswer *answer,
                 const MusterS3Xml *xml)
{
  const char *code = muster_s3_code_of (answer, xml);
  const gboolean is_head = strcmp (request->method, "HEAD") == 0;
  if (code != NULL)
    return muster_s3_class_of_code (code, answer->status);
  if (answer->status == 200 && (is_head || request->sink != NULL) &&
      muster_s3_is_of_object (answer))
    return MUSTER_S3_FINAL; /* a store without ranges or without lengths */
  if (answer->status / 100 == 2 || (answer->status == 404 && !is_head))
    return MUSTER_S3_FAILED;
  return class_of_status (answer->status);
}

MusterS3Class
muster_s3_class_of (const MusterS3Request *request, guint64 from, const MusterHttpAnswer *answer,
                    const MusterS3Xml *xml)
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
    return muster_s3_is_of_object (answer) ? MUSTER_S3_FINAL : MUSTER_S3_FAILED;
  case MUSTER_HTTP_IMPOSSIBLE:
    return MUSTER_S3_FINAL;
  case MUSTER_HTTP_ANSWERED:
    break;
  }
  return muster_s3_is_done (request, from, answer, xml) ? MUSTER_S3_SUCCEEDED
                                                        : class_of_answer (request, answer, xml);
}

/* Shortens the store's text to one line, and hides the secrets that it repeats. (transfer full)
 * */
static char *
tidy (const char *text, const MusterS3Keys *keys)
{
  g_autofree char *hidden = muster_s3_keys_hide (keys, text);
  return muster_safe_text (hidden, -1, MESSAGE_MAX);
}

/* Statuses of servers in front of a store, which have no code of S3. */
static const char *
name_of_status (long status)
{
  return status == 507   ? " (insufficient storage)"
         : status == 509 ? " (bandwidth limit exceeded)"
                         : "";
}

/* Describes a response without a code of S3. */
static char *
describe_status (const MusterHttpAnswer *answer, const MusterS3Xml *xml)
{
  const char *name = name_of_status (answer->status);
  g_autofree char *origin = muster_s3_describe_origin (answer);
  if (muster_s3_code_of (answer, xml) != NULL)
    return g_strdup_printf ("status %ld%s", answer->status, name);
  if (answer->status / 100 == 2 && muster_s3_is_of_object (answer))
    return g_strdup_printf ("status %ld: the store ignores ranges", answer->status);
  return g_strdup_printf ("status %ld%s, which isn't S3's answer%s%s%s", answer->status, name,
                          *origin != '\0' ? " (" : "", origin, *origin != '\0' ? ")" : "");
}

static char *
describe (const MusterHttpAnswer *answer, const MusterS3Xml *xml)
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
  const char *code = muster_s3_code_of (answer, xml);
  if (code == NULL || xml == NULL)
    return describe_status (answer, xml);
  const gboolean has_message = xml->message != NULL && *xml->message != '\0';
  return g_strdup_printf ("%ld %s%s%s", answer->status, code, has_message ? ": " : "",
                          has_message ? xml->message : "");
}

char *
muster_s3_failure_describe (const MusterHttpAnswer *answer, const MusterS3Xml *xml,
                            const MusterS3Keys *keys)
{
  g_autofree char *text = describe (answer, xml);
  return tidy (text, keys);
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

/* Returns the region that the store names. */
static char *
find_region (const MusterHttpAnswer *answer, const MusterS3Xml *xml)
{
  const char *region = muster_http_header (answer, "x-amz-bucket-region");
  region = region != NULL ? region : xml != NULL ? xml->region : NULL;
  return region != NULL ? tidy (region, NULL) : NULL;
}

/* Without permission to list, S3 answers "denied" for a missing object. */
static const char *
hint_of (const MusterS3Request *request, const char *code)
{
  const gboolean reads = strcmp (request->operation, "GetObject") == 0 ||
                         strcmp (request->operation, "HeadObject") == 0;
  return reads && strcmp (code, "AccessDenied") == 0
             ? "; if there is no such object, s3:ListBucket is missing"
             : "";
}

static void
set_meaning (MusterS3Client *client, const MusterS3Request *request, const MusterHttpAnswer *answer,
             const MusterS3Xml *xml, gsize i, const char *what, GError **error)
{
  g_autofree char *cause = fill (client, request, meanings[i].of, meanings[i].text);
  g_autofree char *region =
      g_str_has_suffix (cause, "AWS_REGION") ? find_region (answer, xml) : NULL;
  muster_fail (error, meanings[i].error, "'%s': %s failed: %s%s%s%s (%s)", request->path,
               request->operation, cause, region != NULL ? "=" : "", region != NULL ? region : "",
               hint_of (request, meanings[i].code), what);
}

/* The response may come from a server in front of the store, or in its place. */
static void
set_unknown (MusterS3Client *client, const MusterS3Request *request, const MusterHttpAnswer *answer,
             const char *what, GError **error)
{
  const gboolean is_mute = answer->text->len == 0;
  if (is_mute && (answer->status == 401 || answer->status == 403)) {
    g_autofree char *keys = muster_s3_credentials_describe (client->credentials);
    muster_fail (error, MUSTER_ERROR_PERMISSION_DENIED,
                 "'%s': %s failed: access was denied without a reason; check the credentials (from "
                 "%s) and the proxies in front of the store (%s)",
                 request->path, request->operation, keys, what);
  } else
    muster_fail (error, MUSTER_ERROR_UNAVAILABLE,
                 "'%s': %s failed: %s; check the endpoint and the proxies in front of it",
                 request->path, request->operation, what);
}

void
muster_s3_failure_set (MusterS3Client *client, const MusterS3Request *request,
                       const MusterHttpAnswer *answer, const MusterS3Xml *xml, const char *what,
                       GError **error)
{
  const char *code = muster_s3_code_of (answer, xml);
  if (g_strcmp0 (code, "NoSuchKey") == 0) {
    g_set_error (error, G_FILE_ERROR, G_FILE_ERROR_NOENT, "'%s': no such object", request->path);
    return;
  }
  for (gsize i = 0; code != NULL && i < G_N_ELEMENTS (meanings); i++)
    if (strcmp (code, meanings[i].code) == 0) {
      set_meaning (client, request, answer, xml, i, what, error);
      return;
    }
  if (answer->outcome == MUSTER_HTTP_IMPOSSIBLE)
    muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                 "'%s': %s failed: %s; fix the endpoint, or name the file of the store's "
                 "certificate authority in AWS_CA_BUNDLE",
                 request->path, request->operation, what);
  else if (answer->outcome == MUSTER_HTTP_ANSWERED && code == NULL && answer->status / 100 != 2)
    set_unknown (client, request, answer, what, error);
  else
    muster_fail (error, MUSTER_ERROR_UNKNOWN, "'%s': %s failed: %s", request->path,
                 request->operation, what);
}
