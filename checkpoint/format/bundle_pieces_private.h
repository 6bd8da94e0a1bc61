// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_data_private.h"

G_BEGIN_DECLS

/* A stored tensor or slice that contains part of the requested tensor. */
typedef struct {
  const MusterIndexEntry *entry;
  MusterExtent *place;  /* (owned) its extents in the whole tensor, resolved */
  MusterExtent *common; /* (owned) the requested part of it */
} MusterPiece;

/* Finds the stored pieces of the extents `wanted` (resolved) of a tensor. Checks that they cover
 * all of it without overlap. Returns an array of MusterPiece. */
GArray *muster_bundle_find_pieces (const MusterBundleIndex *index, MusterBundleData *data,
                                   const MusterIndexEntry *whole, const MusterExtent *wanted,
                                   GError **error);

G_END_DECLS
