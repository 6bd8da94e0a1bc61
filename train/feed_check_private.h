// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/training.h"

G_BEGIN_DECLS

/* Compares what a training feeds with what its graph needs, before there is a session:
 * INVALID_ARGUMENT names a feed that doesn't fit its placeholder, and the placeholders that the
 * train op or the loss needs and that aren't fed, with the options that feed them; or one that a
 * queue runner's op needs, which nothing feeds. */
gboolean muster_train_check_feeds (const MusterTraining *training, GError **error);

G_END_DECLS
