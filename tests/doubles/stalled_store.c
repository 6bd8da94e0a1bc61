// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/stalled_store.h"

#include "base/error.h"
#include "tests/gtest_shim.h"

#define MOST_CALLS 1000

void
stalled_store_init (StalledStore *self, MusterObjectStorage *store)
{
  *self = (StalledStore){.process = object_storage_process (store),
                         .masters = object_storage_process (store),
                         .deadline_us = g_get_monotonic_time () + 3600 * MUSTER_SECOND,
                         .cancellable = g_cancellable_new ()};
}

void
stalled_store_clear (StalledStore *self)
{
  g_clear_object (&self->cancellable);
  g_clear_object (&self->masters);
  g_clear_object (&self->process);
}

/* FALSE if the operation is over before its n-th call. */
static gboolean
stalls_at (StalledStore *world, const StalledOperation *operation, guint n)
{
  const guint before = object_storage_n_calls (world->process);
  g_autoptr (GError) error = NULL;
  object_storage_stall_at (world->process, n, world->deadline_us);
  const gboolean is_done = operation->call (world, &error);
  g_autofree char *unbound = object_storage_unbound (world->process);
  if (unbound != NULL)
    MUSTER_FAIL ("%s, stalled at call %u: %s waits in vain", operation->name, n, unbound);
  if (!is_done && !muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED))
    MUSTER_FAIL ("%s, stalled at call %u: %s", operation->name, n, error->message);
  return object_storage_n_calls (world->process) >= before + n;
}

void
stalled_store_expect_ends (const StalledWorld *kind, MusterObjectStorage *filled,
                           const StalledOperation *operations)
{
  for (; operations->name != NULL; operations++) {
    guint n = 0;
    gboolean has_stalled = TRUE;
    while (has_stalled && n < MOST_CALLS) {
      g_autoptr (MusterObjectStorage) store = object_storage_copy (filled);
      g_autofree StalledStore *world = g_malloc0 (kind->size);
      kind->begin (world, store);
      has_stalled = stalls_at (world, operations, ++n);
      kind->clear (world);
    }
    MUSTER_TRACE ("%s", operations->name);
    MUSTER_EXPECT_TRUE (n > 1 && n < MOST_CALLS);
  }
}
