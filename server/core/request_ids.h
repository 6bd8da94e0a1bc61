// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* MusterRequestIds remembers the numbers of the last 10,000 requests that mustn't be run twice: a
 * step whose request the network has doubled isn't run a second time. Any thread. */

typedef struct _MusterRequestIds MusterRequestIds;

MusterRequestIds *muster_request_ids_new (void);
void muster_request_ids_free (MusterRequestIds *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRequestIds, muster_request_ids_free)

/* FALSE with ABORTED, in TensorFlow's words, for a number that came before; 0 stands for none. */
gboolean muster_request_ids_enter (MusterRequestIds *self, gint64 id, const char *method,
                                   GError **error);

G_END_DECLS
