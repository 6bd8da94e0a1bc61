// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* A slice is a box inside a tensor: one extent for each dimension. Plain arrays of extents, as long
 * as the tensor has dimensions. As written and in a key an extent may say "all of it" without a
 * number (length MUSTER_ALL, start 0); a resolved one has its number. */

#define MUSTER_ALL (-1)

typedef struct {
  gint64 start;
  gint64 length;
} MusterExtent;

/* TensorFlow's text, "10 4 0,4:-". */
typedef struct {
  int n_dims;
  gboolean has_shape; /* dims stood before the extents */
  gint64 dims[MUSTER_MAX_DIMS];
  MusterExtent extents[MUSTER_MAX_DIMS];
} MusterSliceSpec;

gboolean muster_slice_spec_parse (MusterSliceSpec *self, const char *text, GError **error);

/* Puts numbers in the place of MUSTER_ALL; FALSE where the slice leaves the shape. */
gboolean muster_slice_resolve (int n_dims, const gint64 *dims, const MusterExtent *slice,
                               MusterExtent *resolved);

/* Of resolved slices. The volume is -1 where it overflows. */
gboolean muster_slice_is_whole (int n_dims, const gint64 *dims, const MusterExtent *slice);
gint64 muster_slice_volume (int n_dims, const MusterExtent *slice);
gboolean muster_slice_intersect (int n_dims, const MusterExtent *a, const MusterExtent *b,
                                 MusterExtent *common);

/* TRUE if the elements of `part` lie side by side in the array of slice `whole`; *offset is where
 * the first one does. */
gboolean muster_slice_is_run (int n_dims, const MusterExtent *part, const MusterExtent *whole,
                              gint64 *offset);

/* Copies the elements of `common`, which lies in both, from the array of slice `from` into that of
 * slice `to`. */
void muster_slice_copy (int n_dims, const MusterExtent *common, const MusterExtent *from,
                        const void *from_data, const MusterExtent *to, void *to_data,
                        gsize element_size);

/* The key under which the index holds a slice of a tensor: it starts with a NUL. */
void muster_slice_append_key (GByteArray *key, const char *name, int n_dims,
                              const MusterExtent *slice);

/* "0,4:-" */
char *muster_slice_to_string (int n_dims, const MusterExtent *slice);

G_END_DECLS
