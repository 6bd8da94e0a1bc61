// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/forwarding_storage.h"

G_BEGIN_DECLS

/* Local files, of which one is watched: whoever reads it finds it can't be read, or something
 * happens just before. */
#define MUSTER_TYPE_WATCHED_STORAGE (muster_watched_storage_get_type ())
G_DECLARE_FINAL_TYPE (MusterWatchedStorage, muster_watched_storage, MUSTER, WATCHED_STORAGE,
                      MusterForwardingStorage)

MusterWatchedStorage *muster_watched_storage_new (void);

/* From now on what ends with this (borrowed) can't be opened. */
void muster_watched_storage_refuse (MusterWatchedStorage *self, const char *path);
/* Calls back once, before what ends with this (borrowed) is looked at, opened or locked for the
 * first time. */
void muster_watched_storage_call (MusterWatchedStorage *self, const char *path,
                                  void (*func) (gpointer user_data), gpointer user_data);

G_END_DECLS
