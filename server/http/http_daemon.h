// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <microhttpd.h>

G_BEGIN_DECLS

/* MusterHttpDaemon runs libmicrohttpd in a main context. It has no thread and listens nowhere: it
 * is given connections. Only the context's thread uses it. */

typedef struct _MusterHttpDaemon MusterHttpDaemon;

typedef struct {
  MHD_AccessHandlerCallback answer;        /* a request's callback */
  MHD_NotifyConnectionCallback connection; /* called when a connection begins and ends */
  gpointer user_data;
} MusterHttpCallbacks;

/* In PEM form. */
typedef struct {
  const char *certificate;
  const char *key;
} MusterHttpTls;

/* tls (nullable): plain text. NULL if libmicrohttpd can't start or refuses the certificate. */
MusterHttpDaemon *muster_http_daemon_new (GMainContext *context,
                                          const MusterHttpCallbacks *callbacks,
                                          const MusterHttpTls *tls);
/* Closes all connections. None may be suspended. */
void muster_http_daemon_free (MusterHttpDaemon *self);

/* Takes a connected socket, which is closed in any case. FALSE: it was refused. */
gboolean muster_http_daemon_add (MusterHttpDaemon *self, int fd, const struct sockaddr *address,
                                 socklen_t size);

G_END_DECLS
