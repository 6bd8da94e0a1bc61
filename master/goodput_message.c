// SPDX-License-Identifier: Apache-2.0
#include "master/goodput_message_private.h"

/* A thousand years: sums don't overflow. */
#define MOST_SPENT_US (G_GINT64_CONSTANT (31557600000) * MUSTER_SECOND)
/* The next chief adds to it, and writes it to a side file, which has no larger numbers. */
#define MOST_COUNTED (G_GUINT64_CONSTANT (1) << 60)

void
muster_goodput_fill (Muster__Goodput *message, const MusterGoodput *goodput)
{
  muster__goodput__init (message);
  message->began_us = goodput->began_us;
  message->age_us = goodput->age_us;
  message->n_spent_us = MUSTER_N_TIMES;
  message->spent_us = (gint64 *)goodput->spent_us;
  message->n_restarts = goodput->n_restarts;
  message->n_failures = goodput->n_failures;
  message->steps_again = goodput->steps_again;
  message->step = goodput->step;
  message->is_least = goodput->is_least;
  message->end = (gint32)goodput->end;
}

MusterGoodput *
muster_goodput_read (const Muster__Goodput *message)
{
  if (message == NULL || message->began_us <= 0)
    return NULL;
  MusterGoodput goodput = {
      .began_us = message->began_us,
      .age_us = CLAMP (message->age_us, 0, MOST_SPENT_US),
      .n_restarts = MIN (message->n_restarts, MOST_COUNTED),
      .n_failures = MIN (message->n_failures, MOST_COUNTED),
      .steps_again = MIN (message->steps_again, MOST_COUNTED),
      .step = CLAMP (message->step, -1, (gint64)MOST_COUNTED),
      .is_least = message->is_least,
      .end = (MusterRunEnd)CLAMP (message->end, MUSTER_RUN_UNENDED, MUSTER_RUN_FINISHED),
  };
  for (gsize i = 0; i < MIN (message->n_spent_us, (gsize)MUSTER_N_TIMES); i++)
    goodput.spent_us[i] = CLAMP (message->spent_us[i], 0, MOST_SPENT_US);
  return muster_goodput_copy (&goodput);
}
