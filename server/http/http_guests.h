// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/http/http_daemon.h"

#include <gio/gio.h>

G_BEGIN_DECLS

/* MusterHttpGuests holds the connections of the HTTP service: a fixed number, each for a short
 * time. A connection beyond that takes the place of the oldest that hasn't sent a request, so that
 * silent ones don't keep probes out. Only the thread of its context uses it. */

typedef struct _MusterHttpGuests MusterHttpGuests;
typedef struct _MusterHttpGuest MusterHttpGuest;

#define MUSTER_HTTP_MAX_GUESTS  64
#define MUSTER_HTTP_MAX_STREAMS 16

/* answer is called for each request, as libmicrohttpd's access handler. tls (nullable). NULL: it
 * lacks memory or file descriptors, or libmicrohttpd refuses the certificate. */
MusterHttpGuests *muster_http_guests_new (GMainContext *context, const MusterHttpTls *tls,
                                          MHD_AccessHandlerCallback answer, gpointer user_data);
/* None of their requests may be suspended. */
void muster_http_guests_free (MusterHttpGuests *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterHttpGuests, muster_http_guests_free)

/* Uses other certificates for connections from now on. FALSE, as for muster_http_guests_new ():
 * those before stay in use. */
gboolean muster_http_guests_use_tls (MusterHttpGuests *self, const MusterHttpTls *tls);

/* Takes a connection; its socket is duplicated. */
void muster_http_guests_add (MusterHttpGuests *self, GSocketConnection *connection);

/* The guest of a request. */
MusterHttpGuest *muster_http_guest_of (struct MHD_Connection *connection);
/* It has sent a request. */
void muster_http_guest_asked (MusterHttpGuest *self);
/* It stays until it leaves. FALSE: too many do. */
gboolean muster_http_guest_stays (MusterHttpGuest *self);

G_END_DECLS
