// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"
#include "saver/builder/saveable.h"

G_BEGIN_DECLS

/* A saver's saveables by name, in the order of their addition. Any thread. The saveables' functions
 * are called without a lock. */
typedef struct _MusterSaveables MusterSaveables;

MusterSaveables *muster_saveables_new (void);
void muster_saveables_free (MusterSaveables *self);
gboolean muster_saveables_add (MusterSaveables *self, const char *name, MusterSaveable *saveable,
                               MusterSaveableFlags flags, GError **error);

/* TRUE if the name of a checkpoint's tensor belongs to one of them. */
gboolean muster_saveables_own (MusterSaveables *self, const char *tensor);

gboolean muster_saveables_has_any (MusterSaveables *self);

/* All their tensors, NAME/KEY: (transfer full) (element-type MusterNamedTensor). *left_out
 * (nullable out) becomes the names of those that can't be copied (transfer full), or NULL. */
GPtrArray *muster_saveables_copy (MusterSaveables *self, char ***left_out, GError **error);

/* Writes them as a separate checkpoint. */
gboolean muster_named_tensors_write (const GPtrArray *tensors, MusterStorage *storage,
                                     const char *prefix, GError **error);

/* A restore has two phases: _read () reads and checks everything before the graph is restored,
 * _hand_out () passes it to the saveables after that. (transfer full). */
GPtrArray *muster_saveables_read (MusterSaveables *self, MusterBundleReader *reader,
                                  GError **error);
gboolean muster_saveables_hand_out (GPtrArray *states, GError **error);

G_END_DECLS
