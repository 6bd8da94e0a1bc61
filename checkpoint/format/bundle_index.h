// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack.h"
#include "checkpoint/format/bundle_entry.h"
#include "checkpoint/format/leveldb_table.h"
#include "checkpoint/format/slice.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterBundleIndex is what PREFIX.index holds, as data: reader, writer and merge share it. Its
 * entries are sorted by key, as bytes, once it was loaded or sorted. */

/* One entry: a tensor, or a slice of one. */
typedef struct {
  MusterBundleEntry entry; /* its name is "" for a slice */
  const guint8 *key;       /* a tensor's name, or muster_slice_append_key () */
  gsize key_size;
  gsize n_slices;             /* of a tensor stored in slices */
  const MusterExtent *slices; /* n_slices times n_dims; not resolved */
} MusterIndexEntry;

typedef struct {
  MusterArena *arena; /* (owned): what the entries point to */
  gint32 n_shards;
  GArray *entries;  /* (owned) (element-type MusterIndexEntry) */
  guint n_parts;    /* how many of them are slices: those come first, since their keys start with a
                       NUL, which no name does */
  const char *flaw; /* (nullable) damage in the file that leaves all entries readable; static */
} MusterBundleIndex;

MusterBundleIndex *muster_bundle_index_new (void);
void muster_bundle_index_free (MusterBundleIndex *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBundleIndex, muster_bundle_index_free)

/* Reads and checks PREFIX.index: NOT_FOUND, DATA_LOSS, UNIMPLEMENTED (byte order, a newer format).
 */
MusterBundleIndex *muster_bundle_index_load (MusterStorage *storage, const char *prefix,
                                             GError **error);

/* Calls func for each entry of PREFIX.index as it stands, unparsed, its header (of the empty key)
 * first, until it returns FALSE; errors as above. *flaw (nullable) as in the struct. */
gboolean muster_bundle_index_walk (MusterStorage *storage, const char *prefix, MusterTableFunc func,
                                   gpointer user_data, const char **flaw, GError **error);

/* How long each data file is at least, going by the index: (transfer full) (element-type guint64)
 * by shard. Costs less than loading it. */
GArray *muster_bundle_index_measure (MusterStorage *storage, const char *prefix, GError **error);

/* How many data files there are, from the header alone. */
gboolean muster_bundle_index_count_shards (MusterStorage *storage, const char *prefix,
                                           gint32 *n_shards, GError **error);

/* The file's bytes; sorts the entries. ALREADY_EXISTS where two have one key. */
GBytes *muster_bundle_index_save (MusterBundleIndex *self, GError **error);

/* The entry of a key, or NULL; sorted indexes only. */
const MusterIndexEntry *muster_bundle_index_find (const MusterBundleIndex *self, const void *key,
                                                  gsize key_size);

/* Adds a copy of an entry, with all that it points to, at the end; the copy is borrowed and may
 * move. */
MusterIndexEntry *muster_bundle_index_add (MusterBundleIndex *self, const MusterIndexEntry *entry);

/* Room for n entries more, borrowed, for the caller to fill: what they point to stays where it is
 * as long as the index does. */
MusterIndexEntry *muster_bundle_index_grow (MusterBundleIndex *self, guint n);

/* Adds a slice to those that an entry lists. */
void muster_bundle_index_add_slice (MusterBundleIndex *self, MusterIndexEntry *entry,
                                    const MusterExtent *slice);

/* TRUE if the entry is that of a slice. */
static inline gboolean
muster_index_entry_is_part (const MusterIndexEntry *self)
{
  return self->key_size > 0 && self->key[0] == '\0';
}

/* The box of all of it. */
static inline void
muster_index_entry_box (const MusterIndexEntry *self, MusterExtent *box)
{
  for (int d = 0; d < self->entry.n_dims; d++)
    box[d] = (MusterExtent){.start = 0, .length = self->entry.dims[d]};
}

/* "PREFIX.index", "PREFIX.data-00000-of-00001" */
char *muster_bundle_index_path (const char *prefix);
char *muster_bundle_data_path (const char *prefix, gint32 shard, gint32 n_shards);

G_END_DECLS
