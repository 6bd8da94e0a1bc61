// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_writer.h"

G_BEGIN_DECLS

/* Checkpoints each of whose bytes has one value, so that a mixture of two shows. */

/* A writer of three tensors, "name/0" to "name/2"; NULL with an error. */
MusterBundleWriter *valued_writer (MusterStorage *storage, const char *prefix, const char *name,
                                   guint8 value, guint n_shards, GError **error);
gboolean valued_write (MusterStorage *storage, const char *prefix, const char *name, guint8 value,
                       guint n_shards, GError **error);

/* The value of every tensor of a checkpoint that is whole; -1 with an error, or without one where
 * they differ. */
int valued_read (MusterStorage *storage, const char *prefix, GError **error);

G_END_DECLS
