// SPDX-License-Identifier: Apache-2.0
/* One operation of the store: attempts, retries and their limits. try_once () makes an attempt
 * and judges it by its class (s3_failure.c); a download continues after the bytes that have
 * arrived. */
#include "checkpoint/s3/s3_private.h"

#include "base/error.h"
#include "checkpoint/s3/curl_library_private.h"
#include "checkpoint/s3/s3_failure_private.h"
#include "checkpoint/s3/s3_metrics_private.h"
#include "checkpoint/s3/s3_origin_private.h"

#include <openssl/evp.h>
#include <string.h>

/* Pauses double from the first to the last, with full jitter, so that many tasks that fail
 * together don't come back together. */
#define FIRST_PAUSE_US     (100 * MUSTER_MILLISECOND)
#define LAST_PAUSE_US      (5 * MUSTER_SECOND)
#define THROTTLED_PAUSE_US (20 * MUSTER_SECOND)

/* Data that arrives damaged four times is damaged each time. */
#define DAMAGED_MAX 3

/* Maximum number of fetches of other keys: a file of keys may be half written. */
#define RENEWED_MAX 3

#define HASH_SIZE 32

/* A running operation. */
typedef struct {
  MusterS3Client *client;
  const MusterS3Request *request;
  const MusterS3Bound *bound;
  MusterS3Answer *answer;
  char hash[2 * HASH_SIZE + 1]; /* hash of the body, or why there is none */
  char *url;                    /* (owned) */
  guint64 from;                 /* the first byte that this attempt reads */
  guint n_attempts;
  guint n_in_row;         /* failures in a row without a byte in between */
  guint n_damaged;        /* failures by checksums */
  guint n_renewed;        /* how often other keys were fetched */
  gboolean is_no_failure; /* the result is no success, but no failure of the store either */
  gint64 failing_since_us;
} Operation;

static void
hash_body (Operation *self)
{
  guint8 hash[HASH_SIZE];
  if (self->request->is_unsigned) {
    g_strlcpy (self->hash, "UNSIGNED-PAYLOAD", sizeof self->hash);
    return;
  }
  EVP_Digest (self->request->body != NULL ? self->request->body : "", self->request->size, hash,
              NULL, EVP_sha256 (), NULL);
  for (gsize i = 0; i < HASH_SIZE; i++)
    g_snprintf (self->hash + 2 * i, 3, "%02x", hash[i]);
}

/* Returns the headers that every request has, and its own. Each is signed. (transfer full) */
static GPtrArray *
make_headers (Operation *self, const MusterS3Keys *keys)
{
  const MusterS3Request *request = self->request;
  GPtrArray *headers = g_ptr_array_new_with_free_func (g_free);
  for (gsize i = 0; i < MUSTER_S3_HEADERS_MAX && request->headers[i] != NULL; i++)
    g_ptr_array_add (headers, g_strdup (request->headers[i]));
  if (request->sink != NULL)
    g_ptr_array_add (headers,
                     g_strdup_printf ("range:bytes=%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT,
                                      request->offset + self->answer->n_read,
                                      request->offset + request->sink_size - 1));
  g_ptr_array_add (headers, g_strconcat ("x-amz-content-sha256:", self->hash, NULL));
  if (keys->token != NULL)
    g_ptr_array_add (headers, g_strconcat ("x-amz-security-token:", keys->token, NULL));
  g_ptr_array_add (headers, NULL);
  return headers;
}

static gboolean
attempt (Operation *self, const MusterS3Keys *keys, MusterHttpAnswer *answer, GError **error)
{
  const MusterS3Request *request = self->request;
  self->answer->n_read = request->is_pinned ? self->answer->n_read : 0;
  const gsize n_read = self->answer->n_read;
  self->from = request->offset + n_read;
  g_autoptr (GPtrArray) headers = make_headers (self, keys);
  const MusterHttpRequest http = {
      .method = request->method,
      .url = self->url,
      .headers = (const char *const *)headers->pdata,
      .body = request->body,
      .size = request->size,
      .service = "s3",
      .region = self->client->config->region,
      .user = keys->id,
      .password = keys->secret,
      .authorities = self->client->config->authorities,
      .stall_us = self->client->config->stall_us,
      .sink = request->sink != NULL ? request->sink + n_read : NULL,
      .sink_size = request->sink_size - n_read,
      .text_max = request->text_max,
  };
  self->n_attempts++;
  MUSTER_S3_COUNT (requests, 1);
  MUSTER_S3_COUNT (bytes_sent, request->size);
  if (!muster_http_perform (&http, self->bound, answer, error))
    return FALSE;
  MUSTER_S3_COUNT (bytes_received, answer->n_sunk + answer->text->len);
  if (answer->is_resent) {
    MUSTER_S3_COUNT (retries_lost, 1);
    self->answer->is_unsure = TRUE;
  }
  if (request->sink == NULL || !muster_s3_is_done (request, self->from, answer, NULL))
    return TRUE; /* not bytes of the object */
  self->answer->n_read += answer->n_sunk;
  if (answer->n_sunk > 0) {
    self->n_in_row = 0;
    self->failing_since_us = 0;
  }
  return TRUE;
}

static guint64
parse_size (const char *text)
{
  guint64 size;
  return text != NULL && g_ascii_string_to_unsigned (text, 10, 0, G_MAXINT64, &size, NULL) ? size
                                                                                           : 0;
}

/* Returns the size of the whole object: of "bytes 0-9/100", or its length. */
static guint64
find_size (const MusterHttpAnswer *answer)
{
  const char *range = muster_http_header (answer, "content-range");
  const char *slash = range != NULL ? strrchr (range, '/') : NULL;
  return slash != NULL ? parse_size (slash + 1)
                       : parse_size (muster_http_header (answer, "content-length"));
}

static gboolean
succeed (Operation *self, const MusterHttpAnswer *http, MusterS3Xml **xml)
{
  MusterS3Answer *answer = self->answer;
  const char *etag = muster_http_header (http, "etag");
  const char *modified = muster_http_header (http, "last-modified");
  const time_t seconds = modified != NULL ? muster_curl (NULL)->getdate (modified, NULL) : -1;
  answer->etag = g_strdup (etag);
  answer->mark = g_strdup (muster_http_header (http, MUSTER_S3_MARK));
  answer->has_sums =
      g_strcmp0 (muster_http_header (http, "x-amz-checksum-algorithm"), "CRC32C") == 0;
  answer->size = find_size (http);
  answer->mtime_us = seconds > 0 ? (gint64)seconds * MUSTER_SECOND : 0;
  answer->xml = g_steal_pointer (xml);
  return TRUE;
}

static void
count_retry (MusterS3Class class)
{
  switch (class) {
  case MUSTER_S3_THROTTLED:
    MUSTER_S3_COUNT (retries_throttled, 1);
    break;
  case MUSTER_S3_FAILED:
    MUSTER_S3_COUNT (retries_failed, 1);
    break;
  case MUSTER_S3_LOST:
    MUSTER_S3_COUNT (retries_lost, 1);
    break;
  case MUSTER_S3_STALLED:
    MUSTER_S3_COUNT (retries_stalled, 1);
    break;
  case MUSTER_S3_DAMAGED:
    MUSTER_S3_COUNT (retries_damaged, 1);
    break;
  case MUSTER_S3_EXPIRED:
    MUSTER_S3_COUNT (retries_expired, 1);
    break;
  default:
    break;
  }
}

/* Returns whether another attempt may help, apart from the time. */
static gboolean
may_retry (Operation *self, MusterS3Class class, const MusterS3Keys *keys)
{
  switch (class) {
  case MUSTER_S3_THROTTLED:
  case MUSTER_S3_FAILED:
  case MUSTER_S3_LOST:
  case MUSTER_S3_STALLED:
    return TRUE;
  case MUSTER_S3_DAMAGED:
    return ++self->n_damaged <= DAMAGED_MAX;
  case MUSTER_S3_EXPIRED:
    return ++self->n_renewed <= RENEWED_MAX &&
           muster_s3_credentials_expire (self->client->credentials, keys);
  default:
    return FALSE;
  }
}

static gint64
choose_pause (Operation *self, MusterS3Class class, const MusterHttpAnswer *answer)
{
  const gint64 most = class == MUSTER_S3_THROTTLED ? THROTTLED_PAUSE_US : LAST_PAUSE_US;
  const gint64 longest = MIN (most, FIRST_PAUSE_US << MIN (self->n_in_row, 16));
  const gint64 jittered = (gint64)(muster_clock_random (self->bound->clock) * (double)longest);
  self->n_in_row++;
  return class == MUSTER_S3_EXPIRED && self->n_renewed == 1
             ? 0
             : MAX (jittered, answer->retry_after_us);
}

/* Returns the instant after which nothing is tried again. */
static gint64
gives_up_at (Operation *self)
{
  const MusterS3Bound *bound = self->bound;
  return bound->deadline_us != MUSTER_WAIT_FOREVER
             ? bound->deadline_us
             : muster_deadline_after (self->failing_since_us, self->client->config->retry_us);
}

static gboolean
fail_late (Operation *self, const char *what, GError **error)
{
  const MusterS3Request *request = self->request;
  const gboolean has_deadline = self->bound->deadline_us != MUSTER_WAIT_FOREVER;
  return muster_fail (
      error, has_deadline ? MUSTER_ERROR_DEADLINE_EXCEEDED : MUSTER_ERROR_UNAVAILABLE,
      "'%s': %s didn't succeed %s, in %u attempt%s: %s", request->path, request->operation,
      has_deadline ? "before the deadline" : "while it was retried", self->n_attempts,
      self->n_attempts == 1 ? "" : "s", what);
}

static gboolean
wait_to_retry (Operation *self, MusterS3Class class, const MusterHttpAnswer *answer,
               const char *what, GError **error)
{
  MusterClock *clock = self->bound->clock;
  const gint64 now_us = muster_clock_now_us (clock);
  self->failing_since_us = self->failing_since_us != 0 ? self->failing_since_us : now_us;
  const gint64 wake_us = muster_deadline_after (now_us, choose_pause (self, class, answer));
  if (wake_us >= gives_up_at (self))
    return fail_late (self, what, error);
  count_retry (class);
  return muster_clock_wait_until (clock, wake_us, muster_s3_cancellable (self->bound), error);
}

/* Returns TRUE if the store works: the object is missing, or isn't as a condition requires. */
static gboolean
is_no_failure (MusterS3Class class, const MusterS3Answer *answer)
{
  static const char *const codes[] = {"NoSuchKey", "NoSuchUpload", "PreconditionFailed", NULL};
  return class == MUSTER_S3_CANCELLED || answer->is_mute ||
         (answer->code != NULL && g_strv_contains (codes, answer->code));
}

/* Returns TRUE if it is to be tried again. */
static gboolean
judge (Operation *self, MusterS3Class class, const MusterS3Keys *keys,
       const MusterHttpAnswer *answer, const MusterS3Xml *xml, GError **error)
{
  g_autofree char *what = muster_s3_failure_describe (answer, xml, keys);
  self->answer->is_mute = class == MUSTER_S3_FINAL && answer->outcome == MUSTER_HTTP_ANSWERED &&
                          strcmp (self->request->method, "HEAD") == 0;
  g_free (self->answer->code);
  self->answer->code = g_strdup (muster_s3_code_of (answer, xml));
  self->is_no_failure = is_no_failure (class, self->answer);
  if (class == MUSTER_S3_CANCELLED)
    return !g_cancellable_set_error_if_cancelled (muster_s3_cancellable (self->bound), error);
  if (class == MUSTER_S3_LATE)
    return fail_late (self, what, error);
  if (class == MUSTER_S3_THROTTLED || class == MUSTER_S3_FAILED || class == MUSTER_S3_LOST ||
      class == MUSTER_S3_STALLED)
    self->answer->is_unsure = TRUE;
  if (may_retry (self, class, keys))
    return wait_to_retry (self, class, answer, what, error);
  if (class == MUSTER_S3_DAMAGED)
    return muster_fail (error, MUSTER_ERROR_UNAVAILABLE,
                        "'%s': %s failed: checksum mismatch: the bytes that arrive aren't those "
                        "that were sent, in %u attempts (%s); check the network and its proxies",
                        self->request->path, self->request->operation, self->n_attempts, what);
  muster_s3_failure_set (self->client, self->request, answer, xml, what, error);
  return FALSE;
}

/* The connection may be lost after the last byte. */
static gboolean
has_read_all (Operation *self, const MusterHttpAnswer *answer)
{
  const MusterS3Request *request = self->request;
  const guint64 size = find_size (answer);
  if (request->sink == NULL || !muster_s3_is_done (request, self->from, answer, NULL) ||
      size <= request->offset)
    return FALSE;
  return self->answer->n_read == MIN (request->sink_size, size - request->offset);
}

/* A file of keys that has just changed may be half written, so it is read again. */
static gboolean
get_keys (Operation *self, MusterS3Keys *keys, GError **error)
{
  static const MusterHttpAnswer nothing;
  for (;;) {
    g_autoptr (GError) why = NULL;
    if (muster_s3_credentials_get (self->client->credentials, self->bound, keys, &why))
      return TRUE;
    if (self->n_renewed > 0 && ++self->n_renewed <= RENEWED_MAX &&
        muster_error_is (why, MUSTER_ERROR_UNAUTHENTICATED)) {
      if (wait_to_retry (self, MUSTER_S3_EXPIRED, &nothing, why->message, error))
        continue;
      return FALSE;
    }
    g_propagate_prefixed_error (error, g_steal_pointer (&why), "'%s': ", self->request->path);
    return FALSE;
  }
}

/* Makes one attempt and judges it. *is_done: it succeeded. */
static gboolean
try_once (Operation *self, gboolean *is_done, GError **error)
{
  g_auto (MusterS3Keys) keys = {0};
  g_auto (MusterHttpAnswer) answer = {0};
  g_autoptr (MusterS3Xml) xml = NULL;
  if (!get_keys (self, &keys, error))
    return FALSE;
  if (!attempt (self, &keys, &answer, error))
    return FALSE;
  if (answer.outcome == MUSTER_HTTP_ANSWERED && answer.text->len > 0)
    xml = muster_s3_xml_parse (answer.text->str, answer.text->len, NULL);
  MusterS3Class class = muster_s3_class_of (self->request, self->from, &answer, xml);
  if (class == MUSTER_S3_LOST && has_read_all (self, &answer))
    class = MUSTER_S3_SUCCEEDED;
  if (class == MUSTER_S3_SUCCEEDED)
    return *is_done = succeed (self, &answer, &xml);
  return judge (self, class, &keys, &answer, xml, error);
}

gboolean
muster_s3_request (MusterS3Client *client, const MusterS3Request *request,
                   const MusterS3Bound *bound, MusterS3Answer *answer, GError **error)
{
  Operation self = {.client = client, .request = request, .bound = bound, .answer = answer};
  gboolean is_done = FALSE;
  *answer = (MusterS3Answer){0};
  if (bound->deadline_us != MUSTER_WAIT_FOREVER &&
      bound->deadline_us <= muster_clock_now_us (bound->clock))
    return fail_late (&self, "the deadline had passed", error);
  hash_body (&self);
  self.url = muster_s3_config_url (client->config, request->uri->bucket,
                                   request->is_of_bucket ? "" : request->uri->key, request->query);
  while (!is_done && try_once (&self, &is_done, error)) {
  }
  g_free (self.url);
  if (!is_done && !self.is_no_failure)
    MUSTER_S3_COUNT (failures, 1);
  return is_done;
}
