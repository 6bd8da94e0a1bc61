// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_writer.h"

G_BEGIN_DECLS

/* Returns the next elements of a tensor (transfer full), in any shape, while it is written: on the
 * thread that writes its data file. NULL with an error. */
typedef MusterTensor *(*MusterBundleNext) (gpointer user_data, GError **error);

/* A tensor of numbers that comes in parts, so that memory never holds it as a whole. */
typedef struct {
  MusterDType dtype;
  int n_dims;
  const gint64 *dims;
  MusterBundleNext next;
  gpointer user_data; /* until the writer has finished */
} MusterBundleParts;

/* Adds a tensor in parts; slice as for muster_bundle_writer_add_slice (), "": the whole. In one
 * data file the tensors are asked for in the order in which they were added. */
gboolean muster_bundle_writer_add_parts (MusterBundleWriter *self, const char *name,
                                         const char *slice, const MusterBundleParts *parts,
                                         GError **error);

G_END_DECLS
