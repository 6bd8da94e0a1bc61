// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/clock.h"

G_BEGIN_DECLS

/* One HTTP request, one attempt, on the calling thread. Connections are kept for the next request
 * of any thread. libcurl does the rest: TLS, HTTP/2, proxies (http_proxy, https_proxy, no_proxy)
 * and the signature. */

/* How long what waits may take: all fields may be 0 or NULL for a request without such a limit, but
 * for clock. Borrowed. */
typedef struct {
  gint64 deadline_us;
  MusterClock *clock;
  GCancellable *cancellable; /* (nullable) */
} MusterS3Bound;

/* What cancels a wait: the bound's, or GLib's current one of the thread, for functions that take
 * none. */
static inline GCancellable *
muster_s3_cancellable (const MusterS3Bound *bound)
{
  return bound->cancellable != NULL ? bound->cancellable : g_cancellable_get_current ();
}

typedef struct {
  const char *method;
  const char *url;
  const char *const *headers; /* "name:value" in lower case, NULL-terminated; all are signed */
  const void *body;
  gsize size;
  /* the signature, of AWS's version 4; NULL: none */
  const char *service;
  const char *region;
  const char *user;
  const char *password;
  const char *authorities; /* (nullable) file of certificates; NULL: the system's */
  gboolean is_direct;      /* no proxy */
  gint64 stall_us;         /* without a byte for so long, the attempt has failed */
  gint64 connect_us;       /* 0: ten seconds */
  /* of an answer with success */
  guint8 *sink; /* (nullable) where the bytes of a part go (status 206); others go to text */
  gsize sink_size;
  gsize text_max; /* 0: MUSTER_HTTP_TEXT_MAX */
} MusterHttpRequest;

#define MUSTER_HTTP_TEXT_MAX ((gsize)64 << 10)

typedef enum {
  MUSTER_HTTP_ANSWERED,
  MUSTER_HTTP_UNREACHABLE, /* no connection */
  MUSTER_HTTP_LOST,        /* the connection ended in the middle */
  MUSTER_HTTP_STALLED,
  MUSTER_HTTP_LATE, /* the deadline passed */
  MUSTER_HTTP_CANCELLED,
  MUSTER_HTTP_UNEXPECTED, /* more bytes than were asked for, or others */
  MUSTER_HTTP_IMPOSSIBLE, /* a retry can't help: an untrusted certificate */
} MusterHttpOutcome;

typedef struct {
  MusterHttpOutcome outcome;
  char *detail;        /* (owned) (nullable) of a failure */
  long status;         /* 0: none came */
  GHashTable *headers; /* (owned) by name in lower case */
  GString *text;       /* (owned) the body, unless it went to the sink; of an error the beginning */
  gboolean is_resent;  /* libcurl sent it twice: the first may have had its effect */
  gsize n_sunk;        /* bytes in the sink, of a failed attempt too */
  gint64 retry_after_us;
} MusterHttpAnswer;

/* FALSE only if libcurl is missing; any other failure is the answer's outcome. answer is to be
 * cleared in either case. */
gboolean muster_http_perform (const MusterHttpRequest *request, const MusterS3Bound *bound,
                              MusterHttpAnswer *answer, GError **error);

/* A header by its name in lower case, or NULL. */
const char *muster_http_header (const MusterHttpAnswer *answer, const char *name);

void muster_http_answer_clear (MusterHttpAnswer *answer);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterHttpAnswer, muster_http_answer_clear)

G_END_DECLS
