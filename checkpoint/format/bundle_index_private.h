// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/unpack_private.h"
#include "checkpoint/format/bundle_entry.h"
#include "checkpoint/format/leveldb_table_private.h"
#include "checkpoint/format/slice_private.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* MusterBundleIndex is the content of PREFIX.index, shared by reader, writer and merge. Entries are
 * sorted by key, as bytes, after loading or sorting. One thread may write; any may read. */

/* An entry: a tensor or a slice of one. */
typedef struct {
  MusterBundleEntry entry; /* its name is "" for a slice */
  const guint8 *key;       /* a tensor's name, or a slice's key (muster_slice_append_key ()) */
  gsize key_size;
  gsize n_slices;             /* for a tensor stored in slices */
  const MusterExtent *slices; /* n_slices times n_dims; not resolved */
} MusterIndexEntry;

typedef struct {
  MusterArena *arena; /* (owned): what the entries point to */
  gint32 n_shards;
  GArray *entries; /* (owned) (element-type MusterIndexEntry) */
  guint n_parts; /* the number of slices, which come first since their keys start with a NUL; names
                    don't */
  const char *flaw; /* (nullable) static: damage in the file that leaves all entries readable */
} MusterBundleIndex;

MusterBundleIndex *muster_bundle_index_new (void);
void muster_bundle_index_free (MusterBundleIndex *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterBundleIndex, muster_bundle_index_free)

/* Reads and checks PREFIX.index. NOT_FOUND, DATA_LOSS, or UNIMPLEMENTED (byte order, a newer
 * format). */
MusterBundleIndex *muster_bundle_index_load (MusterStorage *storage, const char *prefix,
                                             GError **error);

/* The minimum size of each data file according to the index: (transfer full) (element-type guint64)
 * by shard. Cheaper than loading the index. */
GArray *muster_bundle_index_measure (MusterStorage *storage, const char *prefix, GError **error);

/* The number of data files, from the header only. */
gboolean muster_bundle_index_count_shards (MusterStorage *storage, const char *prefix,
                                           gint32 *n_shards, GError **error);

/* Sorts the entries and returns the file's bytes. ALREADY_EXISTS if two entries have the same key.
 */
GBytes *muster_bundle_index_save (MusterBundleIndex *self, GError **error);

/* Sorts the entries that were added. */
void muster_bundle_index_sort (MusterBundleIndex *self);

/* A file's bytes, at most MUSTER_TABLE_MAX: no memory is allocated if it can't be a table. */
GBytes *muster_bundle_read_table (MusterStorage *storage, const char *path, GError **error);

/* The entry with a key, or NULL. The index must be sorted. */
const MusterIndexEntry *muster_bundle_index_find (const MusterBundleIndex *self, const void *key,
                                                  gsize key_size);

/* Appends a deep copy of an entry. The result is borrowed and may move when entries are added. */
MusterIndexEntry *muster_bundle_index_add (MusterBundleIndex *self, const MusterIndexEntry *entry);

/* Appends n entries for the caller to fill, and returns the first (borrowed). What they point to
 * must live as long as the index. */
MusterIndexEntry *muster_bundle_index_grow (MusterBundleIndex *self, guint n);

/* Adds a slice to an entry's list. */
void muster_bundle_index_add_slice (MusterBundleIndex *self, MusterIndexEntry *entry,
                                    const MusterExtent *slice);

/* TRUE if the entry is a slice. */
static inline gboolean
muster_index_entry_is_part (const MusterIndexEntry *self)
{
  return self->key_size > 0 && self->key[0] == '\0';
}

/* The extents of the whole tensor. */
static inline void
muster_index_entry_box (const MusterIndexEntry *self, MusterExtent *box)
{
  for (int d = 0; d < self->entry.n_dims; d++)
    box[d] = (MusterExtent){.start = 0, .length = self->entry.dims[d]};
}

/* Prefix of the name of a checkpoint in a store that can't rename, whose data files have their
 * names already, and whose index hasn't: ".placing-0123abcd-NAME.index" is about NAME.data-… */
#define MUSTER_PLACING_PREFIX ".placing-"

/* The prefix that data files are named after: NAME for ".placing-0123abcd-NAME", otherwise the
 * same. (transfer full) */
char *muster_bundle_home (const char *prefix);

/* "PREFIX.index", "PREFIX.data-00000-of-00001" */
char *muster_bundle_index_path (const char *prefix);
char *muster_bundle_data_path (const char *prefix, gint32 shard, gint32 n_shards);

G_END_DECLS
