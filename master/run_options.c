// SPDX-License-Identifier: Apache-2.0
#include "master/run_options.h"

#include "base/protowire.h"

gint64
muster_run_options_timeout_us (GBytes *options)
{
  if (options == NULL)
    return 0;
  gsize size;
  gconstpointer data = g_bytes_get_data (options, &size);
  MusterProtoReader reader = muster_proto_reader (data, size);
  MusterProtoField field;
  gint64 timeout_ms = 0;
  while (muster_proto_read_field (&reader, &field))
    if (field.number == MUSTER_RUN_OPTIONS_TIMEOUT_IN_MS && field.type == MUSTER_WIRE_VARINT)
      timeout_ms = (gint64)field.value;
  return CLAMP (timeout_ms, 0, G_MAXINT64 / MUSTER_MILLISECOND) * MUSTER_MILLISECOND;
}

gint64
muster_run_options_deadline_us (GBytes *options, gint64 deadline_us)
{
  gint64 timeout_us = muster_run_options_timeout_us (options);
  if (deadline_us == 0)
    deadline_us = MUSTER_WAIT_FOREVER;
  if (timeout_us == 0)
    return deadline_us;
  gint64 now_us = muster_clock_now_us (muster_system_clock ());
  return MIN (deadline_us, muster_deadline_after (now_us, timeout_us));
}
