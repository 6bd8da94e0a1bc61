// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_index_private.h"

G_BEGIN_DECLS

/* MusterBundleData reads the data files of a checkpoint. Files are opened when needed and read in
 * blocks; each block's checksum is computed while it is in the cache. Files aren't mapped, and
 * sizes are checked, since a file may be truncated, even while it is read. Any thread. */
typedef struct _MusterBundleData MusterBundleData;

MusterBundleData *muster_bundle_data_new (MusterStorage *storage, const char *prefix,
                                          gint32 n_shards);
/* The same for the only data file of a checkpoint, in memory (docs/checkpoint-format.md, V1). */
MusterBundleData *muster_bundle_data_new_in_memory (MusterStorage *storage, const char *prefix,
                                                    GBytes *bytes);
void muster_bundle_data_free (MusterBundleData *self);

/* Sets DATA_LOSS, which names the entry's tensor and its file; why completes the sentence. Always
 * returns FALSE. */
gboolean muster_bundle_data_damaged (MusterBundleData *self, const MusterIndexEntry *entry,
                                     const char *why, GError **error);

/* An open data file. Release it with muster_data_file_unref (). */
typedef struct {
  MusterStorage *storage;    /* (owned) */
  MusterStorageInput *input; /* (owned) (nullable) */
  GBytes *bytes;             /* (owned) (nullable) the file, if it is in memory */
  char *path;                /* (owned) */
  guint64 size;              /* when it was opened */
} MusterDataFile;

MusterDataFile *muster_bundle_data_open (MusterBundleData *self, gint32 shard, GError **error);
void muster_data_file_unref (MusterDataFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterDataFile, muster_data_file_unref)

/* Checks that the entry's bytes are inside its file, and enough for its elements; memory may then
 * be allocated for them. */
gboolean muster_bundle_data_check_place (MusterBundleData *self, const MusterIndexEntry *entry,
                                         GError **error);
/* The same for an open file. */
gboolean muster_data_file_check_place (const MusterDataFile *file, MusterBundleData *data,
                                       const MusterIndexEntry *entry, GError **error);

/* Bytes to read: an entry's, some of them, or a gap between entries. */
typedef struct MusterDataSpan {
  const MusterIndexEntry *entry; /* (nullable) NULL for a gap, whose bytes must be zero */
  gint32 shard;
  guint64 offset;
  guint64 size;
  guint8 *into;                 /* (nullable) destination; NULL only checks the bytes */
  guint32 sum;                  /* atomic: the checksum so far */
  gsize left;                   /* atomic: bytes not read yet */
  struct MusterDataSpan *whole; /* (nullable) the span of all of the entry's numbers, if these are
                                   some of them: it has sum and left, over several loads */
} MusterDataSpan;

MusterDataSpan muster_data_span (const MusterIndexEntry *entry, guint8 *into);

/* Orders spans by file and offset; a GCompareFunc. */
int muster_data_span_compare (gconstpointer a, gconstpointer b);

typedef struct {
  MusterBundleProgress progress; /* (nullable) */
  gpointer user_data;
  GCancellable *cancellable; /* (nullable) */
} MusterDataLoad;

/* Reads and checks n spans with a few threads, after sorting them by place. TRUE if all are whole.
 * The checksum of strings that are read into memory is checked by the code that decodes them. */
gboolean muster_bundle_data_load (MusterBundleData *self, MusterDataSpan *spans, gsize n,
                                  const MusterDataLoad *how, GError **error);

G_END_DECLS
