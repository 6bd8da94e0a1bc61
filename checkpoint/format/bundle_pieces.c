// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/format/bundle_pieces_private.h"

#include "base/error.h"

#include <string.h>

/* Maximum number of slices that are joined, because overlaps are checked for each pair. */
#define MAX_SLICES 16384

static void
clear_piece (gpointer item)
{
  MusterPiece *piece = item;
  g_free (piece->place);
  g_free (piece->common);
}

/* Returns the entry of a stored slice, whose shape must be the slice's. */
static const MusterIndexEntry *
find_part (const MusterBundleIndex *index, MusterBundleData *data, const MusterIndexEntry *whole,
           const MusterExtent *slice, const MusterExtent *place, GError **error)
{
  const int n_dims = whole->entry.n_dims;
  g_autoptr (GByteArray) key = g_byte_array_new ();
  muster_slice_append_key (key, whole->entry.name, n_dims, slice);
  const MusterIndexEntry *part = muster_bundle_index_find (index, key->data, key->len);
  gboolean fits = part != NULL && part->entry.dtype == whole->entry.dtype &&
                  part->entry.n_dims == n_dims && !part->entry.is_sliced;
  for (int d = 0; fits && d < n_dims; d++)
    fits = part->entry.dims[d] == place[d].length;
  if (fits)
    return part;
  g_autofree char *text = muster_slice_to_string (n_dims, slice);
  g_autofree char *why =
      g_strdup_printf ("lists the slice %s, which is missing or has another shape", text);
  muster_bundle_data_damaged (data, whole, why, error);
  return NULL;
}

/* Adds a piece if the slice contains a part of what is wanted. */
static gboolean
add_piece (const MusterBundleIndex *index, MusterBundleData *data, GArray *pieces,
           const MusterIndexEntry *whole, const MusterExtent *slice, const MusterExtent *wanted,
           GError **error)
{
  const int n_dims = whole->entry.n_dims;
  MusterExtent place[MUSTER_MAX_DIMS], common[MUSTER_MAX_DIMS];
  const gsize size = (gsize)n_dims * sizeof (MusterExtent);
  if (!muster_slice_resolve (n_dims, whole->entry.dims, slice, place))
    return muster_bundle_data_damaged (data, whole, "lists a slice outside its shape", error);
  if (!muster_slice_intersect (n_dims, place, wanted, common))
    return TRUE;
  const MusterIndexEntry *entry =
      whole->entry.is_sliced ? find_part (index, data, whole, slice, place, error) : whole;
  if (entry == NULL)
    return FALSE;
  if (!muster_bundle_data_check_place (data, entry, error))
    return FALSE;
  const MusterPiece piece = {
      .entry = entry, .place = g_memdup2 (place, size), .common = g_memdup2 (common, size)};
  g_array_append_val (pieces, piece);
  return TRUE;
}

/* Pieces that don't overlap and together have the wanted volume cover it. */
static gboolean
check_cover (MusterBundleData *data, const MusterIndexEntry *whole, const GArray *pieces,
             const MusterExtent *wanted, GError **error)
{
  const int n_dims = whole->entry.n_dims;
  MusterExtent overlap[MUSTER_MAX_DIMS];
  gint64 covered = 0;
  for (guint i = 0; i < pieces->len; i++) {
    const MusterPiece *piece = &g_array_index (pieces, MusterPiece, i);
    for (guint j = 0; j < i; j++)
      if (muster_slice_intersect (n_dims, piece->common,
                                  g_array_index (pieces, MusterPiece, j).common, overlap))
        return muster_bundle_data_damaged (data, whole, "has slices that overlap", error);
    covered += muster_slice_volume (n_dims, piece->common);
  }
  if (covered == muster_slice_volume (n_dims, wanted))
    return TRUE;
  return muster_bundle_data_damaged (data, whole, "is incomplete: slices are missing", error);
}

GArray *
muster_bundle_find_pieces (const MusterBundleIndex *index, MusterBundleData *data,
                           const MusterIndexEntry *whole, const MusterExtent *wanted,
                           GError **error)
{
  static const MusterExtent all[MUSTER_MAX_DIMS] = {
      [0 ... MUSTER_MAX_DIMS - 1] = {.start = 0, .length = MUSTER_ALL}};
  g_autoptr (GArray) pieces = g_array_new (FALSE, FALSE, sizeof (MusterPiece));
  g_array_set_clear_func (pieces, clear_piece);
  if (whole->n_slices > MAX_SLICES) {
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "The tensor '%s' is stored in %" G_GSIZE_FORMAT " slices; muster reads at most %d",
                 whole->entry.name, whole->n_slices, MAX_SLICES);
    return NULL;
  }
  if (!whole->entry.is_sliced && !add_piece (index, data, pieces, whole, all, wanted, error))
    return NULL;
  for (gsize i = 0; i < whole->n_slices; i++)
    if (!add_piece (index, data, pieces, whole, whole->slices + i * (gsize)whole->entry.n_dims,
                    wanted, error))
      return NULL;
  return check_cover (data, whole, pieces, wanted, error) ? g_steal_pointer (&pieces) : NULL;
}
