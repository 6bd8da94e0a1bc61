// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/doubles/object_storage.h"

G_BEGIN_DECLS

/* A store that stalls, and what its operations get: a test's world begins with one. */
typedef struct {
  MusterObjectStorage *process; /* (owned) it stalls */
  MusterObjectStorage *masters; /* (owned) the same store for masters, which doesn't */
  gint64 deadline_us;           /* an hour away, although a stalled call ends at once */
  GCancellable *cancellable;    /* (owned) never cancelled */
} StalledStore;

void stalled_store_init (StalledStore *self, MusterObjectStorage *store);
void stalled_store_clear (StalledStore *self);

typedef struct {
  const char *name;
  gboolean (*call) (gpointer world, GError **error);
} StalledOperation;

/* What the operations act on; a world is a struct that begins with a StalledStore. */
typedef struct {
  gsize size;
  void (*begin) (gpointer world, MusterObjectStorage *store);
  void (*clear) (gpointer world);
} StalledWorld;

/* Runs each operation (terminated by an empty one) in worlds of their own, with copies of a filled
 * store that stalls from the first call of the operation on, from the second one, and so on. Fails
 * the test unless each such call ends by the operation's deadline and its cancellable, or within a
 * minute, and the operation succeeds or fails with DEADLINE_EXCEEDED. */
void stalled_store_expect_ends (const StalledWorld *kind, MusterObjectStorage *filled,
                                const StalledOperation *operations);

G_END_DECLS
