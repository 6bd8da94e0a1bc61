// SPDX-License-Identifier: Apache-2.0
/* One HTTP request by libcurl: it sends, receives into the caller's sink, and ends at a deadline
 * or when it is cancelled. A few connections are kept for later requests. The retries are
 * s3_request.c's. */
#include "checkpoint/s3/http_private.h"

#include "base/blocking_private.h"
#include "checkpoint/s3/curl_library_private.h"

#include <string.h>

/* Maximum number of idle connections. */
#define IDLE_MAX 16

#define HEADERS_MAX       128
#define CONNECT_US        (10 * MUSTER_SECOND)
#define BUFFER_SIZE       (256L << 10)
#define POLL_MAX_MS       1000
#define IS_SUCCESS(value) ((value) / 100 == 2)

/* A handle of libcurl with the connections that it keeps. One request at a time. */
typedef struct {
  CURLM *multi;
  CURL *easy;
} Line;

static GMutex idle_lock;
static Line *idle[IDLE_MAX]; /* guarded by idle_lock */
static guint n_idle;         /* guarded by idle_lock */

/* A running request. */
typedef struct {
  const MusterCurl *curl;
  const MusterHttpRequest *request;
  MusterHttpAnswer *answer;
  Line *line;
  gsize n_sent;
  guint n_times;     /* how often the request was sent */
  const char *fault; /* (nullable) what is wrong with the response's body */
  char detail[CURL_ERROR_SIZE];
} Transfer;

static Line *
take_line (const MusterCurl *curl)
{
  g_mutex_lock (&idle_lock);
  Line *line = n_idle > 0 ? idle[--n_idle] : NULL;
  g_mutex_unlock (&idle_lock);
  if (line == NULL) {
    line = g_new0 (Line, 1);
    line->multi = curl->multi_init ();
    line->easy = curl->easy_init ();
  }
  return line;
}

static void
give_line (const MusterCurl *curl, Line *line, gboolean is_usable)
{
  curl->easy_reset (line->easy);
  g_mutex_lock (&idle_lock);
  const gboolean is_kept = is_usable && n_idle < IDLE_MAX;
  if (is_kept)
    idle[n_idle++] = line;
  g_mutex_unlock (&idle_lock);
  if (is_kept)
    return;
  curl->easy_cleanup (line->easy);
  curl->multi_cleanup (line->multi);
  g_free (line);
}

static size_t
on_read (char *buffer, size_t size, size_t n, void *data)
{
  Transfer *self = data;
  const gsize wanted = MIN (size * n, self->request->size - self->n_sent);
  if (wanted > 0)
    memcpy (buffer, (const char *)self->request->body + self->n_sent, wanted);
  self->n_sent += wanted;
  return wanted;
}

/* libcurl sends a request again if a kept connection ends before the response. */
static int
on_seek (void *data, curl_off_t offset, int origin)
{
  Transfer *self = data;
  if (origin != SEEK_SET || offset < 0 || (guint64)offset > self->request->size)
    return CURL_SEEKFUNC_FAIL;
  self->n_sent = (gsize)offset;
  return CURL_SEEKFUNC_OK;
}

/* Called before each time that the request is sent. */
static int
on_request (void *data, char *to G_GNUC_UNUSED, char *from G_GNUC_UNUSED, int to_port G_GNUC_UNUSED,
            int from_port G_GNUC_UNUSED)
{
  ((Transfer *)data)->n_times++;
  return CURL_PREREQFUNC_OK;
}

static size_t
sink (Transfer *self, const char *data, gsize n)
{
  const MusterHttpRequest *request = self->request;
  if (n > request->sink_size - self->answer->n_sunk) {
    self->fault = "the answer is longer than was asked for";
    return 0;
  }
  memcpy (request->sink + self->answer->n_sunk, data, n);
  self->answer->n_sunk += n;
  return n;
}

static size_t
on_write (char *data, size_t size, size_t n, void *user_data)
{
  Transfer *self = user_data;
  const gsize length = size * n,
              most = self->request->text_max != 0 ? self->request->text_max : MUSTER_HTTP_TEXT_MAX;
  GString *text = self->answer->text;
  long status = 0;
  self->curl->easy_getinfo (self->line->easy, CURLINFO_RESPONSE_CODE, &status);
  if (status == 206 && self->request->sink != NULL)
    return sink (self, data, length);
  if (IS_SUCCESS (status) && length > most - text->len) {
    self->fault = "the answer is too long";
    return 0;
  }
  g_string_append_len (text, data, (gssize)MIN (length, most - text->len));
  return length;
}

/* Keeps the headers of the last response: those of a proxy or of "100 Continue" come before. */
static size_t
on_header (char *data, size_t size, size_t n, void *user_data)
{
  Transfer *self = user_data;
  GHashTable *headers = self->answer->headers;
  const gsize length = size * n;
  const char *colon = memchr (data, ':', length);
  if (length >= 5 && memcmp (data, "HTTP/", 5) == 0)
    g_hash_table_remove_all (headers);
  else if (colon != NULL && g_hash_table_size (headers) < HEADERS_MAX) {
    char *value = g_strstrip (g_strndup (colon + 1, length - (gsize)(colon + 1 - data)));
    g_hash_table_insert (headers, g_ascii_strdown (data, colon - data), value);
  }
  return length;
}

static void
set_method (Transfer *self)
{
  const MusterCurl *curl = self->curl;
  const MusterHttpRequest *request = self->request;
  CURL *easy = self->line->easy;
  if (strcmp (request->method, "HEAD") == 0)
    curl->easy_setopt (easy, CURLOPT_NOBODY, 1L);
  else if (strcmp (request->method, "PUT") == 0) {
    curl->easy_setopt (easy, CURLOPT_UPLOAD, 1L);
    curl->easy_setopt (easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)request->size);
  } else if (strcmp (request->method, "POST") == 0) {
    curl->easy_setopt (easy, CURLOPT_POST, 1L);
    curl->easy_setopt (easy, CURLOPT_POSTFIELDS, request->body != NULL ? request->body : "");
    curl->easy_setopt (easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
  } else if (strcmp (request->method, "GET") != 0)
    curl->easy_setopt (easy, CURLOPT_CUSTOMREQUEST, request->method);
}

static void
set_signature (Transfer *self)
{
  const MusterHttpRequest *request = self->request;
  if (request->service == NULL)
    return;
  g_autofree char *scope = g_strconcat ("aws:amz:", request->region, ":", request->service, NULL);
  self->curl->easy_setopt (self->line->easy, CURLOPT_AWS_SIGV4, scope);
  self->curl->easy_setopt (self->line->easy, CURLOPT_USERNAME, request->user);
  self->curl->easy_setopt (self->line->easy, CURLOPT_PASSWORD, request->password);
}

static void
set_limits (Transfer *self)
{
  const MusterHttpRequest *request = self->request;
  const gint64 connect_us = request->connect_us > 0 ? request->connect_us : CONNECT_US;
  const long stall_s = (long)((request->stall_us + MUSTER_SECOND - 1) / MUSTER_SECOND);
  CURL *easy = self->line->easy;
  self->curl->easy_setopt (easy, CURLOPT_CONNECTTIMEOUT_MS,
                           (long)MAX (1, connect_us / MUSTER_MILLISECOND));
  self->curl->easy_setopt (easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
  self->curl->easy_setopt (easy, CURLOPT_LOW_SPEED_TIME, MAX (1L, stall_s));
  self->curl->easy_setopt (easy, CURLOPT_NOSIGNAL, 1L);
  self->curl->easy_setopt (easy, CURLOPT_QUICK_EXIT, 1L); /* doesn't wait for a slow name server */
  self->curl->easy_setopt (easy, CURLOPT_BUFFERSIZE, BUFFER_SIZE);
  self->curl->easy_setopt (easy, CURLOPT_UPLOAD_BUFFERSIZE, BUFFER_SIZE);
}

static void
set_callbacks (Transfer *self)
{
  const MusterCurl *curl = self->curl;
  CURL *easy = self->line->easy;
  curl->easy_setopt (easy, CURLOPT_READFUNCTION, on_read);
  curl->easy_setopt (easy, CURLOPT_READDATA, self);
  curl->easy_setopt (easy, CURLOPT_SEEKFUNCTION, on_seek);
  curl->easy_setopt (easy, CURLOPT_SEEKDATA, self);
  curl->easy_setopt (easy, CURLOPT_PREREQFUNCTION, on_request);
  curl->easy_setopt (easy, CURLOPT_PREREQDATA, self);
  curl->easy_setopt (easy, CURLOPT_WRITEFUNCTION, on_write);
  curl->easy_setopt (easy, CURLOPT_WRITEDATA, self);
  curl->easy_setopt (easy, CURLOPT_HEADERFUNCTION, on_header);
  curl->easy_setopt (easy, CURLOPT_HEADERDATA, self);
  curl->easy_setopt (easy, CURLOPT_ERRORBUFFER, self->detail);
}

/* Prepares the request. (transfer full) the headers, which must live as long as it. */
static struct curl_slist *
prepare (Transfer *self)
{
  const MusterCurl *curl = self->curl;
  const MusterHttpRequest *request = self->request;
  CURL *easy = self->line->easy;
  struct curl_slist *headers = NULL;
  for (gsize i = 0; request->headers != NULL && request->headers[i] != NULL; i++)
    headers = curl->slist_append (headers, request->headers[i]);
  curl->easy_setopt (easy, CURLOPT_URL, request->url);
  curl->easy_setopt (easy, CURLOPT_PROTOCOLS_STR, "http,https");
  curl->easy_setopt (easy, CURLOPT_HTTPHEADER, headers);
  if (request->is_direct)
    curl->easy_setopt (easy, CURLOPT_NOPROXY, "*");
  if (request->authorities != NULL)
    curl->easy_setopt (easy, CURLOPT_CAINFO, request->authorities);
  set_method (self);
  set_signature (self);
  set_limits (self);
  set_callbacks (self);
  return headers;
}

static MusterHttpOutcome
outcome_of (CURLcode code)
{
  switch (code) {
  case CURLE_OK:
    return MUSTER_HTTP_ANSWERED;
  case CURLE_COULDNT_RESOLVE_PROXY:
  case CURLE_COULDNT_RESOLVE_HOST:
  case CURLE_COULDNT_CONNECT:
    return MUSTER_HTTP_UNREACHABLE;
  case CURLE_OPERATION_TIMEDOUT:
    return MUSTER_HTTP_STALLED;
  case CURLE_WRITE_ERROR:
    return MUSTER_HTTP_UNEXPECTED;
  case CURLE_PARTIAL_FILE:
  case CURLE_GOT_NOTHING:
  case CURLE_SEND_ERROR:
  case CURLE_RECV_ERROR:
  case CURLE_SEND_FAIL_REWIND:
  case CURLE_SSL_CONNECT_ERROR:
  case CURLE_HTTP2:
  case CURLE_HTTP2_STREAM:
  case CURLE_WEIRD_SERVER_REPLY:
  case CURLE_AGAIN:
    return MUSTER_HTTP_LOST;
  default:
    return MUSTER_HTTP_IMPOSSIBLE;
  }
}

/* Returns how it ended, or -1 while it runs. */
static int
read_result (Transfer *self)
{
  int n_left;
  CURLMsg *message;
  while ((message = self->curl->multi_info_read (self->line->multi, &n_left)) != NULL)
    if (message->msg == CURLMSG_DONE) {
      if (*self->detail == '\0')
        g_strlcpy (self->detail, self->curl->easy_strerror (message->data.result),
                   sizeof self->detail);
      return (int)outcome_of (message->data.result);
    }
  return -1;
}

/* Returns the instant of the machine's clock that ends the attempt: a fake clock may have
 * skipped time. */
static gint64
ends_at (const MusterS3Bound *bound)
{
  const gint64 left =
      muster_deadline_remaining (bound->deadline_us, muster_clock_now_us (bound->clock));
  return muster_deadline_after (muster_clock_now_us (muster_system_clock ()), left);
}

static MusterHttpOutcome
run (Transfer *self, const MusterS3Bound *bound)
{
  const MusterCurl *curl = self->curl;
  const gint64 end_us = ends_at (bound);
  for (;;) {
    int n_running, outcome;
    if (g_cancellable_is_cancelled (muster_s3_cancellable (bound)))
      return MUSTER_HTTP_CANCELLED;
    if (curl->multi_perform (self->line->multi, &n_running) != CURLM_OK)
      return MUSTER_HTTP_LOST;
    if ((outcome = read_result (self)) >= 0)
      return (MusterHttpOutcome)outcome;
    const gint64 left_us =
        muster_deadline_remaining (end_us, muster_clock_now_us (muster_system_clock ()));
    if (left_us == 0)
      return MUSTER_HTTP_LATE;
    curl->multi_poll (self->line->multi, NULL, 0,
                      (int)MIN (left_us / MUSTER_MILLISECOND + 1, POLL_MAX_MS), NULL);
  }
}

typedef struct {
  const MusterCurl *curl;
  CURLM *multi;
} Wakeup;

static void
on_cancelled (GCancellable *cancellable G_GNUC_UNUSED, gpointer data)
{
  const Wakeup *wakeup = data;
  wakeup->curl->multi_wakeup (wakeup->multi);
}

static MusterHttpOutcome
run_cancellable (Transfer *self, const MusterS3Bound *bound)
{
  const Wakeup wakeup = {self->curl, self->line->multi};
  GCancellable *cancellable = muster_s3_cancellable (bound);
  const gulong id =
      cancellable != NULL
          ? g_cancellable_connect (cancellable, G_CALLBACK (on_cancelled), (gpointer)&wakeup, NULL)
          : 0;
  muster_about_to_block ();
  const MusterHttpOutcome outcome = run (self, bound);
  g_cancellable_disconnect (cancellable, id);
  return outcome;
}

static void
note_answer (Transfer *self)
{
  MusterHttpAnswer *answer = self->answer;
  curl_off_t seconds = 0;
  self->curl->easy_getinfo (self->line->easy, CURLINFO_RESPONSE_CODE, &answer->status);
  self->curl->easy_getinfo (self->line->easy, CURLINFO_RETRY_AFTER, &seconds);
  answer->is_resent = self->n_times > 1;
  answer->retry_after_us = CLAMP (seconds, 0, G_MAXINT32) * MUSTER_SECOND;
}

gboolean
muster_http_perform (const MusterHttpRequest *request, const MusterS3Bound *bound,
                     MusterHttpAnswer *answer, GError **error)
{
  Transfer self = {.curl = muster_curl (error), .request = request, .answer = answer};
  *answer =
      (MusterHttpAnswer){.headers = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, g_free),
                         .text = g_string_new (NULL)};
  if (self.curl == NULL)
    return FALSE;
  self.line = take_line (self.curl);
  struct curl_slist *headers = prepare (&self);
  self.curl->multi_add_handle (self.line->multi, self.line->easy);
  answer->outcome = run_cancellable (&self, bound);
  note_answer (&self);
  self.curl->multi_remove_handle (self.line->multi, self.line->easy);
  self.curl->slist_free_all (headers);
  if (answer->outcome != MUSTER_HTTP_ANSWERED)
    answer->detail = g_utf8_make_valid (self.fault != NULL ? self.fault : self.detail, -1);
  give_line (self.curl, self.line, answer->outcome == MUSTER_HTTP_ANSWERED);
  return TRUE;
}

const char *
muster_http_header (const MusterHttpAnswer *answer, const char *name)
{
  return g_hash_table_lookup (answer->headers, name);
}

void
muster_http_answer_clear (MusterHttpAnswer *answer)
{
  g_clear_pointer (&answer->detail, g_free);
  g_clear_pointer (&answer->headers, g_hash_table_unref);
  if (answer->text != NULL)
    g_string_free (g_steal_pointer (&answer->text), TRUE);
}
