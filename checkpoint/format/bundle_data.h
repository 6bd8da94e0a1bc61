// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_index.h"

G_BEGIN_DECLS

/* MusterBundleData is the data files of a checkpoint, as the reader sees them: opened when they are
 * needed, read in blocks, each block's checksum taken while it is in cache. Nothing is mapped, and
 * nothing is taken for granted: a file may have been cut off, or be cut off meanwhile. Any thread.
 */
typedef struct _MusterBundleData MusterBundleData;

MusterBundleData *muster_bundle_data_new (MusterStorage *storage, const char *prefix,
                                          gint32 n_shards);
void muster_bundle_data_free (MusterBundleData *self);

/* FALSE, with DATA_LOSS that names the entry's tensor and its file; why ends the sentence. */
gboolean muster_bundle_data_damaged (MusterBundleData *self, const MusterIndexEntry *entry,
                                     const char *why, GError **error);

/* One of the files, opened; let go of with muster_data_file_unref (). */
typedef struct {
  MusterStorage *storage;    /* (owned) */
  MusterStorageInput *input; /* (owned) */
  char *path;                /* (owned) */
  guint64 size;              /* when it was opened */
} MusterDataFile;

MusterDataFile *muster_bundle_data_open (MusterBundleData *self, gint32 shard, GError **error);
void muster_data_file_unref (MusterDataFile *file);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterDataFile, muster_data_file_unref)

/* The entry's bytes lie in its file, and are as many as its elements need at least: memory may be
 * taken for them. */
gboolean muster_bundle_data_check_place (MusterBundleData *self, const MusterIndexEntry *entry,
                                         GError **error);
/* The same of a file that is open. */
gboolean muster_data_file_check_place (const MusterDataFile *file, MusterBundleData *data,
                                       const MusterIndexEntry *entry, GError **error);

/* What is to be read: the bytes of an entry, or a gap between entries. */
typedef struct {
  const MusterIndexEntry *entry; /* (nullable) NULL for a gap, which must be zeros */
  gint32 shard;
  guint64 offset;
  guint64 size;
  guint8 *into; /* (nullable) where the bytes go; else they are only checked */
  guint32 sum;  /* atomic: what of the checksum is there */
  gsize left;   /* atomic: bytes that aren't read yet */
} MusterDataSpan;

MusterDataSpan muster_data_span (const MusterIndexEntry *entry, guint8 *into);

/* Orders spans by their place; a GCompareFunc. */
int muster_data_span_compare (gconstpointer a, gconstpointer b);

typedef struct {
  MusterBundleProgress progress; /* (nullable) */
  gpointer user_data;
  GCancellable *cancellable; /* (nullable) */
} MusterDataLoad;

/* Reads n spans, which it sorts by place, with a few threads, and checks them: TRUE if all are
 * whole. The checksum of strings that are read into memory is left to who decodes them. */
gboolean muster_bundle_data_load (MusterBundleData *self, MusterDataSpan *spans, gsize n,
                                  const MusterDataLoad *how, GError **error);

G_END_DECLS
