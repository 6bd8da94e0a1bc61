// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/position/batches.h"

G_BEGIN_DECLS

/* Each array is fed to one tensor. */
gboolean muster_batches_check_feeds (MusterBatches *self /* nullable */, gsize n_feeds,
                                     GError **error);

G_END_DECLS
