// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>

G_BEGIN_DECLS

/* MusterRequestIds remembers the ids of the last 10,000 requests that mustn't run twice, such as a
 * step whose request was duplicated by the network. Any thread. */

typedef struct _MusterRequestIds MusterRequestIds;

MusterRequestIds *muster_request_ids_new (void);
void muster_request_ids_free (MusterRequestIds *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterRequestIds, muster_request_ids_free)

/* FALSE with ABORTED, in TensorFlow's words, for an id that was seen before; 0 is no id. */
gboolean muster_request_ids_enter (MusterRequestIds *self, gint64 id, const char *method,
                                   GError **error);

/* Forgets one that was entered: its request was refused before it did anything, and may come again.
 */
void muster_request_ids_leave (MusterRequestIds *self, gint64 id);

G_END_DECLS
