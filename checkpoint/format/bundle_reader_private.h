// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_reader.h"

G_BEGIN_DECLS

/* TRUE if a tensor of two checkpoints has the same checksums, in the same slices, so that its bytes
 * are the same. */
gboolean muster_bundle_reader_is_same (MusterBundleReader *self, const char *name,
                                       MusterBundleReader *other, const char *other_name);

/* A tensor that is read in parts that don't overlap, with what is known so far of the checksums of
 * its stored tensors (element-type MusterIndexEntry MusterDataSpan). */
GHashTable *muster_bundle_parts_new (void);

/* Reads a part as muster_bundle_reader_read_slice () does, but of a stored tensor only the bytes
 * that it has, where they are next to each other in the file: the checksum is checked once the
 * parts have had all bytes of the stored tensor. For numbers. */
MusterTensor *muster_bundle_reader_read_part (MusterBundleReader *self, GHashTable *parts,
                                              const MusterBundleEntry *entry, const char *slice,
                                              GCancellable *cancellable, GError **error);

G_END_DECLS
