// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "graph/tensor.h"

G_BEGIN_DECLS

/* A slice is a box in a tensor: an array with one extent for each dimension. In texts and keys an
 * extent may mean the whole dimension (length MUSTER_ALL, start 0). In a resolved slice every
 * extent has its length. */

#define MUSTER_ALL (-1)

typedef struct {
  gint64 start;
  gint64 length;
} MusterExtent;

/* TensorFlow's text, "10 4 0,4:-". */
typedef struct {
  int n_dims;
  gboolean has_shape; /* the text contained dims */
  gint64 dims[MUSTER_MAX_DIMS];
  MusterExtent extents[MUSTER_MAX_DIMS];
} MusterSliceSpec;

gboolean muster_slice_spec_parse (MusterSliceSpec *self, const char *text, GError **error);

/* Replaces MUSTER_ALL by the dimension's size. FALSE if the slice isn't inside the shape. */
gboolean muster_slice_resolve (int n_dims, const gint64 *dims, const MusterExtent *slice,
                               MusterExtent *resolved);

/* For resolved slices. The volume is -1 if it overflows. */
gboolean muster_slice_is_whole (int n_dims, const gint64 *dims, const MusterExtent *slice);
gint64 muster_slice_volume (int n_dims, const MusterExtent *slice);
gboolean muster_slice_intersect (int n_dims, const MusterExtent *a, const MusterExtent *b,
                                 MusterExtent *common);

/* TRUE if the elements of `part` are contiguous in the array of slice `whole`; *offset is the index
 * of the first. */
gboolean muster_slice_is_run (int n_dims, const MusterExtent *part, const MusterExtent *whole,
                              gint64 *offset);

/* Copies the elements of `common`, a part of both slices, from the array of slice `from` to that of
 * slice `to`. */
void muster_slice_copy (int n_dims, const MusterExtent *common, const MusterExtent *from,
                        const void *from_data, const MusterExtent *to, void *to_data,
                        gsize element_size);

/* Appends a slice's key in the index. It starts with a NUL. */
void muster_slice_append_key (GByteArray *key, const char *name, int n_dims,
                              const MusterExtent *slice);

/* "0,4:-" */
char *muster_slice_to_string (int n_dims, const MusterExtent *slice);

G_END_DECLS
