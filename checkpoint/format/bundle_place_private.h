// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_index_private.h"

G_BEGIN_DECLS

/* Publishing in a store that can't rename: data files are written under the names that they keep,
 * and the index last. */

/* The least number of data files, n or more, that no data file of that prefix has in its name; 0
 * with an error. */
gint32 muster_bundle_free_number (MusterStorage *storage, const char *prefix, gint32 n,
                                  GError **error);

/* How many shards a name "BASE.data-00000-of-00003" speaks of; 0 for any other name. */
gint32 muster_bundle_shards_of (const char *name, const char *base);

/* A publication of data files (NULL-terminated, by shard, durable). */
typedef struct {
  MusterBundleIndex *index; /* its n_shards is changed if necessary */
  const char *const *data;
  const char *to;
  const char *version; /* (nullable) of to's index, that it still must have; NULL: that of now */
  /* set by muster_bundle_place () */
  gboolean is_published;
  gboolean is_unsure; /* the index may be there: the store's answer was lost */
} MusterBundlePlacing;

/* Copies those data files that lie elsewhere, replaces the index of to, and removes the files that
 * then have no index. ABORTED if another writer has published to. */
gboolean muster_bundle_place (MusterStorage *storage, MusterBundlePlacing *placing, GError **error);

/* Removes the first n of the data files of a prefix, after a failure. */
void muster_bundle_remove_data (MusterStorage *storage, const char *prefix, gint32 n,
                                gint32 n_shards);

/* Removes what muster_bundle_writer_finish () has written at a prefix that nothing was published
 * from. */
void muster_bundle_discard (MusterStorage *storage, const char *prefix);

/* The version of a prefix's index, to be published over: see muster_storage_read_versioned (). NULL
 * without an error in a store that can rename. */
char *muster_bundle_index_version (MusterStorage *storage, const char *prefix, GError **error);

G_END_DECLS
