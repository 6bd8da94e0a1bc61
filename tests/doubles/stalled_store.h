// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/doubles/object_storage.h"

G_BEGIN_DECLS

/* An operation that a store stalls. */
typedef struct {
  const char *name;
  gboolean (*call) (gpointer data, GError **error);
} StalledOperation;

/* The deadline that an operation gets: an hour away, although a stalled call ends at once. */
gint64 stalled_store_deadline (void);

/* Runs an operation, whose n-th call of process and all later ones get no answer. Fails the test
 * unless each of them ends by the operation's deadline and its cancellable, or within a minute, and
 * the operation succeeds or fails with DEADLINE_EXCEEDED. FALSE if it is over before the n-th
 * call. */
gboolean stalled_store_ends (MusterObjectStorage *process, guint n, gint64 deadline_us,
                             const StalledOperation *operation, gpointer data);

G_END_DECLS
