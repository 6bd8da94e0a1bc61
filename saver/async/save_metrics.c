// SPDX-License-Identifier: Apache-2.0
#include "saver/async/save_metrics.h"

#include "saver/async/save_metrics_private.h"

typedef struct {
  MusterSaveMetrics metrics;
  gint64 mark_us; /* progress counts from this instant */
} Meter;

struct _MusterSaveMeter {
  Meter own; /* guarded by lock */
};

static GMutex lock;
static Meter process;        /* guarded by lock */
static gboolean has_process; /* guarded by lock: its mark is set */

MusterSaveMeter *
muster_save_meter_new (gint64 now_us)
{
  MusterSaveMeter *self = g_new0 (MusterSaveMeter, 1);
  self->own.mark_us = now_us;
  g_mutex_lock (&lock);
  if (!has_process)
    process.mark_us = now_us;
  has_process = TRUE;
  g_mutex_unlock (&lock);
  return self;
}

void
muster_save_meter_free (MusterSaveMeter *self)
{
  g_free (self);
}

static void
add (MusterDurations *self, gint64 duration_us)
{
  self->min_us = self->count == 0 ? duration_us : MIN (self->min_us, duration_us);
  self->max_us = MAX (self->max_us, duration_us);
  self->sum_us += duration_us;
  self->count++;
}

void
muster_save_meter_blocked (MusterSaveMeter *self, gint64 start_us, gint64 end_us)
{
  const gint64 duration_us = MAX (end_us - start_us, 0);
  g_mutex_lock (&lock);
  add (&self->own.metrics.save_blocked_us, duration_us);
  add (&process.metrics.save_blocked_us, duration_us);
  g_mutex_unlock (&lock);
}

static void
save_ended (Meter *self, gint64 start_us, gboolean durable)
{
  if (!durable) {
    self->metrics.n_failed++;
    return;
  }
  self->metrics.n_durable++;
  self->metrics.progress_saved_us += MAX (start_us - self->mark_us, 0);
  self->mark_us = MAX (start_us, self->mark_us);
}

void
muster_save_meter_written (MusterSaveMeter *self, gint64 start_us, gint64 end_us, gboolean durable)
{
  const gint64 duration_us = MAX (end_us - start_us, 0);
  g_mutex_lock (&lock);
  add (&self->own.metrics.async_write_us, duration_us);
  add (&process.metrics.async_write_us, duration_us);
  save_ended (&self->own, start_us, durable);
  save_ended (&process, start_us, durable);
  g_mutex_unlock (&lock);
}

void
muster_save_meter_saved (MusterSaveMeter *self, gint64 start_us, gboolean durable)
{
  g_mutex_lock (&lock);
  save_ended (&self->own, start_us, durable);
  save_ended (&process, start_us, durable);
  g_mutex_unlock (&lock);
}

MusterSaveMetrics
muster_save_meter_read (MusterSaveMeter *self)
{
  g_mutex_lock (&lock);
  MusterSaveMetrics metrics = self->own.metrics;
  g_mutex_unlock (&lock);
  return metrics;
}

MusterSaveMetrics
muster_save_metrics_process (void)
{
  g_mutex_lock (&lock);
  MusterSaveMetrics metrics = process.metrics;
  g_mutex_unlock (&lock);
  return metrics;
}

#define LABEL "{api=\"async_checkpoint\"}"

static void
put_seconds (GString *text, const char *name, const char *ending, gint64 us)
{
  char buffer[G_ASCII_DTOSTR_BUF_SIZE];
  g_string_append_printf (text, "muster_%s_seconds%s" LABEL " %s\n", name, ending,
                          g_ascii_dtostr (buffer, sizeof buffer, (double)us / 1e6));
}

static void
put_durations (GString *text, const char *name, const MusterDurations *self)
{
  g_string_append_printf (text, "# TYPE muster_%s_seconds summary\n", name);
  put_seconds (text, name, "_sum", self->sum_us);
  g_string_append_printf (text, "muster_%s_seconds_count" LABEL " %" G_GUINT64_FORMAT "\n", name,
                          self->count);
}

static void
put_count (GString *text, const char *name, guint64 count)
{
  g_string_append_printf (
      text, "# TYPE muster_%s counter\nmuster_%s_total" LABEL " %" G_GUINT64_FORMAT "\n", name,
      name, count);
}

char *
muster_save_metrics_text (const MusterSaveMetrics *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  GString *text = g_string_new (NULL);
  put_durations (text, "save_blocked", &self->save_blocked_us);
  put_durations (text, "async_write", &self->async_write_us);
  g_string_append (text, "# TYPE muster_progress_saved_seconds counter\n");
  put_seconds (text, "progress_saved", "_total", self->progress_saved_us);
  put_count (text, "checkpoints_durable", self->n_durable);
  put_count (text, "checkpoints_failed", self->n_failed);
  return g_string_free (text, FALSE);
}
