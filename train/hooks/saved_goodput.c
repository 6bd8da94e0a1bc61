// SPDX-License-Identifier: Apache-2.0
#include "train/hooks/saved_goodput_private.h"

#include "base/log_private.h"

/* A directory that hangs delays the end by this time at most. */
#define WRITE_US (2 * MUSTER_SECOND)

void
muster_saved_goodput_offer (MusterGoodputMeter *meter, MusterSaver *saver, const char *directory)
{
  MusterGoodput before = MUSTER_GOODPUT_INIT;
  if (muster_saver_read_goodput (saver, directory, &before))
    muster_goodput_meter_offer (meter, &before);
}

void
muster_saved_goodput_note (MusterGoodputMeter *meter, MusterSaver *saver, MusterRunEnd end)
{
  MusterGoodput goodput = MUSTER_GOODPUT_INIT;
  muster_goodput_meter_read (meter, &goodput);
  goodput.end = end;
  muster_saver_set_goodput (saver, &goodput);
}

void
muster_saved_goodput_write (MusterGoodputMeter *meter, MusterSaver *saver, const char *directory,
                            MusterRunEnd end, gint64 deadline_us, GCancellable *cancellable)
{
  const gint64 now_us = muster_clock_now_us (muster_system_clock ());
  g_autoptr (GError) failure = NULL;
  muster_saved_goodput_note (meter, saver, end);
  if (!muster_saver_write_goodput (saver, directory,
                                   MIN (deadline_us, muster_deadline_after (now_us, WRITE_US)),
                                   cancellable, &failure))
    muster_log (G_LOG_LEVEL_INFO, "goodput", "MESSAGE", "can't write the goodput to '%s': %s",
                directory, failure->message);
}
