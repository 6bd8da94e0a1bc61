// SPDX-License-Identifier: Apache-2.0
#include "master/save_status_message_private.h"

#include <string.h>

/* Maximum length of a checkpoint's path. */
#define MOST_PATH 4096

void
muster_save_status_fill (Muster__SaveStatus *message, const MusterSaveStatus *status)
{
  muster__save_status__init (message);
  message->n_step = message->n_age_us = MUSTER_N_SAVE_STATES;
  message->step = (gint64 *)status->step;
  message->age_us = (gint64 *)status->age_us;
  message->n_last_us = message->n_total_us = MUSTER_N_SAVE_PHASES;
  message->last_us = (gint64 *)status->last_us;
  message->total_us = (gint64 *)status->total_us;
  message->last_bytes = status->last_bytes;
  message->n_durable = status->n_durable;
  message->n_failed = status->n_failed;
  message->n_skipped = status->n_skipped;
  message->n_replaced = status->n_replaced;
  message->interval_us = status->interval_us;
  message->saving = (char *)(status->saving != NULL ? status->saving : "");
  message->saving_state = status->saving_state;
  message->saving_step = status->saving_step;
  message->saving_age_us = status->saving_age_us;
}

/* A thousand years, so that sums don't overflow. Counts are shown as signed numbers, and have
 * the same limit. */
#define MOST (G_GINT64_CONSTANT (31557600000) * MUSTER_SECOND)

static guint64
limit_count (guint64 number)
{
  return MIN (number, (guint64)MOST);
}

/* A sender of another version may have fewer or more numbers. */
static void
read_steps (const gint64 *from, gsize n_from, gint64 *to, gsize n_to)
{
  for (gsize i = 0; i < MIN (n_from, n_to); i++)
    to[i] = MAX (from[i], -1);
}

static void
read_times (const gint64 *from, gsize n_from, gint64 *to, gsize n_to)
{
  for (gsize i = 0; i < MIN (n_from, n_to); i++)
    to[i] = CLAMP (from[i], 0, MOST);
}

MusterSaveStatus *
muster_save_status_read (const Muster__SaveStatus *message)
{
  if (message == NULL)
    return NULL;
  MusterSaveStatus status = MUSTER_SAVE_STATUS_INIT;
  read_steps (message->step, message->n_step, status.step, MUSTER_N_SAVE_STATES);
  read_times (message->age_us, message->n_age_us, status.age_us, MUSTER_N_SAVE_STATES);
  read_times (message->last_us, message->n_last_us, status.last_us, MUSTER_N_SAVE_PHASES);
  read_times (message->total_us, message->n_total_us, status.total_us, MUSTER_N_SAVE_PHASES);
  status.last_bytes = limit_count (message->last_bytes);
  status.n_durable = limit_count (message->n_durable);
  status.n_failed = limit_count (message->n_failed);
  status.n_skipped = limit_count (message->n_skipped);
  status.n_replaced = limit_count (message->n_replaced);
  status.interval_us = MAX (message->interval_us, 0);
  if (*message->saving != '\0' && strlen (message->saving) <= MOST_PATH)
    status.saving = g_strdup (message->saving);
  status.saving_state =
      (MusterSaveState)CLAMP (message->saving_state, MUSTER_SAVE_REQUESTED, MUSTER_SAVE_REPLACED);
  status.saving_step = MAX (message->saving_step, -1);
  status.saving_age_us = CLAMP (message->saving_age_us, 0, MOST);
  return g_memdup2 (&status, sizeof status);
}
