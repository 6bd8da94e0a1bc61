// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/stalled_store.h"

#include "base/error.h"
#include "tests/gtest_shim.h"

gint64
stalled_store_deadline (void)
{
  return g_get_monotonic_time () + 3600 * MUSTER_SECOND;
}

gboolean
stalled_store_ends (MusterObjectStorage *process, guint n, gint64 deadline_us,
                    const StalledOperation *operation, gpointer data)
{
  const guint before = object_storage_n_calls (process);
  g_autoptr (GError) error = NULL;

  object_storage_stall_at (process, n, deadline_us);
  const gboolean is_done = operation->call (data, &error);
  g_autofree char *unbound = object_storage_unbound (process);
  if (unbound != NULL)
    MUSTER_FAIL ("%s, stalled at call %u: %s waits in vain", operation->name, n, unbound);
  if (!is_done && !muster_error_is (error, MUSTER_ERROR_DEADLINE_EXCEEDED))
    MUSTER_FAIL ("%s, stalled at call %u: %s", operation->name, n, error->message);
  return object_storage_n_calls (process) >= before + n;
}
