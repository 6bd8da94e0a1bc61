// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <microhttpd.h>

G_BEGIN_DECLS

/* MusterHttpEvents sends a text to each listener every second, as server-sent events, and renders
 * it once for all of them. Without listeners it does nothing. Only the thread of its context uses
 * it.
 */

typedef struct _MusterHttpEvents MusterHttpEvents;

/* Returns one line of text, (transfer full). */
typedef char *(*MusterHttpRender) (gpointer user_data);

MusterHttpEvents *muster_http_events_new (GMainContext *context, MusterHttpRender render,
                                          gpointer user_data);
/* After the last stream has ended. */
void muster_http_events_free (MusterHttpEvents *self);

/* A response that goes on until the client leaves or muster_http_events_end () is called. */
struct MHD_Response *muster_http_events_open (MusterHttpEvents *self,
                                              struct MHD_Connection *connection);

/* Ends all streams, and lets none begin: afterwards no connection is suspended. */
void muster_http_events_end (MusterHttpEvents *self);

G_END_DECLS
