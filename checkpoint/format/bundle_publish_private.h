// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/format/bundle_index_private.h"
#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* Renames the checkpoint `from` to `to`, durably; both are prefixes in one store. The data files
 * may come from another program: they are compared in length with the index, and synced. An
 * existing checkpoint `to` is replaced atomically: a reader at any time, and after a crash at any
 * call, finds the old one or the new one, whole. For that the new one may get another number of
 * data files, some of them empty. The old one's files are removed last, or kept while a reader
 * holds a lock on its index.
 *
 * On failure `from` is unchanged. The exception: if only the last sync fails, `to` is already the
 * new one, but may not survive a crash. NOT_FOUND, DATA_LOSS, INVALID_ARGUMENT (both are the same),
 * or an error of the store. */
gboolean muster_bundle_publish (MusterStorage *storage, const char *from, const char *to,
                                GError **error);

/* How `from` becomes `to`. */
typedef struct {
  const char *from, *to;
  gboolean is_own;     /* this process wrote the files, which are complete and synced */
  const char *version; /* (nullable) of to's index, which it still must have: see bundle_place.h */
  /* set by muster_bundle_publish_with () */
  gboolean is_unsure; /* on failure: it may have been published; its files must stay */
} MusterBundlePublishing;

/* The same. ABORTED if the version is another one by now. In a store that can't rename, data files
 * that don't lie under the names of `to` are copied. */
gboolean muster_bundle_publish_with (MusterStorage *storage, MusterBundlePublishing *what,
                                     GError **error);

/* Prefix of the name of a checkpoint that will be published under another name. The writer syncs
 * its files; publishing syncs the directory. */
#define MUSTER_SAVING_PREFIX ".saving-"

/* Publishes data files (NULL-terminated, by shard, durable) with an index that isn't written yet;
 * its n_shards is changed if necessary. On failure the files are where they were. *is_published is
 * TRUE if to is the new checkpoint, or may be, which is possible on failure too. */
gboolean muster_bundle_publish_files (MusterStorage *storage, MusterBundleIndex *index,
                                      const char *const *data, const char *to,
                                      gboolean *is_published, GError **error);

/* Checks that all data files of a prefix exist and are as long as its index requires, and syncs
 * them. Returns their paths by shard (transfer full). */
char **muster_bundle_sync_data (MusterStorage *storage, const char *prefix, GError **error);

G_END_DECLS
