// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_data.h"

G_BEGIN_DECLS

/* A stored tensor, or stored slice, that a read takes something from. */
typedef struct {
  const MusterIndexEntry *entry;
  MusterExtent *place;  /* (owned) where it lies in the whole tensor, resolved */
  MusterExtent *common; /* (owned) what is wanted of it */
} MusterPiece;

/* Finds what is stored of the box `wanted` (resolved) of a tensor, and checks that it is all there
 * and there once: an array of MusterPiece. */
GArray *muster_bundle_find_pieces (const MusterBundleIndex *index, MusterBundleData *data,
                                   const MusterIndexEntry *whole, const MusterExtent *wanted,
                                   GError **error);

G_END_DECLS
