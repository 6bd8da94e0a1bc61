// SPDX-License-Identifier: Apache-2.0
#include "graph/run_options_private.h"

#include "base/error.h"
#include "base/protowire_private.h"

/* The others that are known are numbers, too: the trace level and the thread pool. */
enum { LAST_NUMBER = 3 };

gboolean
muster_run_options_read (GBytes *options, gint64 *timeout_us)
{
  gsize size = 0;
  gconstpointer data = options != NULL ? g_bytes_get_data (options, &size) : NULL;
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  gint64 timeout_ms = 0;
  while (muster_proto_read_field (&reader, &field)) {
    if (field.number <= LAST_NUMBER && field.type != MUSTER_WIRE_VARINT)
      return FALSE;
    if (field.number == MUSTER_RUN_OPTIONS_TIMEOUT_IN_MS)
      timeout_ms = (gint64)field.value;
  }
  if (!muster_proto_at_end (&reader))
    return FALSE;
  *timeout_us = CLAMP (timeout_ms, 0, G_MAXINT64 / MUSTER_MILLISECOND) * MUSTER_MILLISECOND;
  return TRUE;
}

gboolean
muster_run_options_bound (GBytes *options, gint64 *deadline_us, GError **error)
{
  gint64 timeout_us = 0;
  if (!muster_run_options_read (options, &timeout_us))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "the RunOptions are malformed");
  if (timeout_us == 0)
    return TRUE;
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  *deadline_us = MIN (*deadline_us, muster_deadline_after (now_us, timeout_us));
  return TRUE;
}
