// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/core/types.h"

#include <microhttpd.h>

G_BEGIN_DECLS

/* MusterHttpAnswers answers the requests of the HTTP service. One thread. */

typedef struct _MusterHttpAnswers MusterHttpAnswers;

/* server is borrowed, names (nullable) copied (http_hosts.h). context is that of the connections.
 */
MusterHttpAnswers *muster_http_answers_new (MusterServer *server, GMainContext *context,
                                            const char *const *names);
/* After the last connection has ended. */
void muster_http_answers_free (MusterHttpAnswers *self);

/* Adds another name of the server. Before the first request. */
void muster_http_answers_add_name (MusterHttpAnswers *self, const char *name);

/* Ends what would go on: afterwards no connection is suspended. */
void muster_http_answers_end (MusterHttpAnswers *self);

/* libmicrohttpd's access handler; data is the MusterHttpAnswers. */
enum MHD_Result muster_http_answer (void *data, struct MHD_Connection *connection, const char *path,
                                    const char *method, const char *version, const char *upload,
                                    size_t *n_upload, void **request);

G_END_DECLS
