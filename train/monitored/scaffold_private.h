// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/monitored/scaffold.h"

G_BEGIN_DECLS

/* The n feeds passed in for the init op, borrowed (nullable). */
const MusterFeed *muster_scaffold_init_feeds (MusterScaffold *self, gsize *n);

/* A MusterSessionFunc whose user_data is the scaffold: the result of its init function, TRUE
 * without one. */
gboolean muster_scaffold_call_init_func (MusterSession *session, gint64 deadline_us,
                                         GCancellable *cancellable, gpointer scaffold,
                                         GError **error);

G_END_DECLS
