// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "checkpoint/store/storage.h"

G_BEGIN_DECLS

/* Makes the checkpoint at prefix from the checkpoint to, durably; both lie in one store. Its data
 * files may be another program's: they are compared in length with the index, and synced. Where a
 * checkpoint to is there already it is replaced at once: whoever looks, at any time and after a
 * crash at any call, finds the old one or the new one, whole. For that the new one may get another
 * number of data files, empty ones among them. The old one's files go last, and stay where somebody
 * holds its index locked, reading it.
 *
 * On failure from is as it was; but where only the last sync has failed, to is the new one, though
 * maybe not after a crash. NOT_FOUND, DATA_LOSS, INVALID_ARGUMENT (from is to), or the store's. */
gboolean muster_bundle_publish (MusterStorage *storage, const char *from, const char *to,
                                GError **error);

/* The same for what a writer of this process has made, whose files are whole and synced. */
gboolean muster_bundle_publish_own (MusterStorage *storage, const char *from, const char *to,
                                    GError **error);

/* What the name of a checkpoint begins with that is to be published under another: its files are
 * synced by their writer, its directory only by who publishes it. */
#define MUSTER_SAVING_PREFIX ".saving-"

G_END_DECLS
