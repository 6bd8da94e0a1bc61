// SPDX-License-Identifier: Apache-2.0
/* Decides whether a save fits the time that is left after the signal: from the saves so far or,
 * before there is one, from a small write and the model's size. */
#include "train/preemption/preemption_private.h"

#include "base/require_private.h"
#include "ready/backoff.h"
#include "saver/tiered.h"

#include <stdlib.h>
#include <string.h>

G_DEFINE_FINAL_TYPE (MusterPreemption, muster_preemption, G_TYPE_OBJECT)

/* The size of the write that measures the directory's speed. */
#define PIECE_BYTES ((gsize)1 << 20)
#define MOST_PIECES 4

MusterPreemption *
muster_preemption_new (gint64 grace_us, MusterClock *clock)
{
  MusterPreemption *self = g_object_new (MUSTER_TYPE_PREEMPTION, NULL);
  self->grace_us = grace_us > 0 ? grace_us : MUSTER_DEFAULT_GRACE_US;
  self->reserve_us = MIN (self->grace_us / 10, MUSTER_SECOND);
  self->clock = g_object_ref (clock ? clock : muster_system_clock ());
  return self;
}

gint64
muster_preemption_deadline_locked (const MusterPreemption *self)
{
  return self->requested_us + self->grace_us - self->reserve_us;
}

void
muster_preemption_nudge_locked (MusterPreemption *self)
{
  g_autoptr (GCancellable) before = self->nudge;
  self->nudge = g_cancellable_new ();
  g_cancellable_cancel (before);
}

/* --- requests --- */

/* While a run is without a session, only a model that is still on the master could be saved. */
static gboolean
has_nothing_to_save_locked (const MusterPreemption *self)
{
  return !self->has_hooks || (self->is_lost && (self->saver == NULL || self->is_all_saved));
}

static void
end_at_once_locked (MusterPreemption *self)
{
  if (self->ended_us == 0)
    self->ended_us = muster_clock_now_us (self->clock);
  self->was_saved = TRUE;
}

/* A drill has no signal. */
static void
request (MusterPreemption *self, int signal_number, gboolean is_drill)
{
  g_mutex_lock (&self->lock);
  /* A run that has ended can't be preempted any more. */
  gboolean is_first = !g_atomic_int_get (&self->is_requested) && self->ended_us == 0;
  gboolean is_at_once = is_first && has_nothing_to_save_locked (self);
  if (!is_first &&
      !g_atomic_int_get (&self->is_requested)) { /* it counts if there is another run */
    self->is_missed = TRUE;
    self->missed_signal = signal_number;
  }
  if (is_first) {
    self->requested_us = muster_clock_now_us (self->clock);
    self->signal_number = signal_number;
    self->is_drill = is_drill;
    g_atomic_int_set (&self->is_requested, 1);
  }
  if (is_at_once)
    end_at_once_locked (self);
  g_mutex_unlock (&self->lock);
  if (is_first)
    g_cancellable_cancel (self->requested);
  if (is_at_once)
    g_cancellable_cancel (self->cancellable);
}

void
muster_preemption_request (MusterPreemption *self, int signal_number)
{
  g_return_if_fail (self != NULL);
  request (self, signal_number, FALSE);
  muster_preemption_wake (self);
}

void
muster_preemption_drill (MusterPreemption *self)
{
  g_return_if_fail (self != NULL);
  request (self, 0, TRUE);
  muster_preemption_wake (self);
}

/* Takes what a signal handler noted, so that no answer depends on whether the watcher has run. */
static void
take_pending (MusterPreemption *self)
{
  int signal_number = g_atomic_int_exchange (&self->pending, 0);
  if (signal_number != 0)
    request (self, signal_number, FALSE);
}

gboolean
muster_preemption_is_requested (MusterPreemption *self)
{
  g_return_val_if_fail (self != NULL, FALSE);
  take_pending (self);
  return g_atomic_int_get (&self->is_requested) != 0;
}

GCancellable *
muster_preemption_cancellable (MusterPreemption *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->cancellable;
}

GCancellable *
muster_preemption_requested (MusterPreemption *self)
{
  return self->requested;
}

void
muster_preemption_begin (MusterPreemption *self, MusterCoordinator *coordinator)
{
  take_pending (self);
  g_mutex_lock (&self->lock);
  self->has_hooks = TRUE;
  self->is_lost = self->is_all_saved = FALSE;
  g_set_object (&self->coordinator, coordinator);
  if (!g_atomic_int_get (&self->is_requested))
    self->ended_us = 0;
  g_mutex_unlock (&self->lock);
}

void
muster_preemption_note_all_saved (MusterPreemption *self, gboolean is_all_saved)
{
  g_mutex_lock (&self->lock);
  self->is_all_saved = is_all_saved;
  g_mutex_unlock (&self->lock);
}

void
muster_preemption_note_lost (MusterPreemption *self)
{
  const gboolean is_requested = muster_preemption_is_requested (self);
  g_mutex_lock (&self->lock);
  self->is_lost = TRUE;
  const gboolean is_at_once = is_requested && has_nothing_to_save_locked (self);
  if (is_at_once)
    end_at_once_locked (self);
  g_mutex_unlock (&self->lock);
  if (is_at_once)
    g_cancellable_cancel (self->cancellable);
}

void
muster_preemption_begin_again (MusterPreemption *self)
{
  g_mutex_lock (&self->lock);
  const gboolean is_missed = self->is_missed;
  if (!g_atomic_int_get (&self->is_requested)) {
    self->has_hooks = self->is_lost = self->is_all_saved = FALSE;
    self->ended_us = 0;
    self->is_missed = FALSE;
    g_clear_object (&self->coordinator);
    g_clear_object (&self->saver);
  }
  g_mutex_unlock (&self->lock);
  if (is_missed)
    muster_preemption_request (self, self->missed_signal);
}

void
muster_preemption_end (MusterPreemption *self, const GError *failure)
{
  g_mutex_lock (&self->lock);
  if (self->ended_us == 0)
    self->ended_us = muster_clock_now_us (self->clock);
  if (g_atomic_int_get (&self->is_requested)) {
    if (failure != NULL && self->why == NULL && !self->was_saved && !self->is_all_saved)
      self->why = g_strdup (failure->message);
    self->was_saved = self->was_saved || failure != NULL || self->saver == NULL;
  }
  muster_preemption_nudge_locked (self);
  g_mutex_unlock (&self->lock);
}

/* --- how long a save takes --- */

void
muster_preemption_set_saver (MusterPreemption *self, MusterSaver *saver, const char *directory)
{
  g_return_if_fail (self != NULL);
  g_mutex_lock (&self->lock);
  g_set_object (&self->saver, saver);
  g_free (self->directory);
  self->directory = g_strdup (directory);
  g_mutex_unlock (&self->lock);
}

static int
compare (const void *a, const void *b)
{
  const gint64 x = *(const gint64 *)a, y = *(const gint64 *)b;
  return (x > y) - (x < y);
}

/* A larger checkpoint takes proportionally longer; a smaller one is assumed to take as long. */
static gint64
scale (const MusterMeasuredSave *save, guint64 bytes)
{
  double factor = save->bytes > 0 && bytes > save->bytes ? (double)bytes / (double)save->bytes : 1;
  double us = (double)save->took_us * factor;
  return us < (double)(G_MAXINT64 / 4) ? (gint64)us : G_MAXINT64 / 4;
}

gint64
muster_preemption_known_locked (const MusterPreemption *self, guint64 bytes)
{
  gint64 each_us[MUSTER_PREEMPTION_SAVES];
  guint n = MIN (self->n_saves, MUSTER_PREEMPTION_SAVES);
  for (guint i = 0; i < n; i++)
    each_us[i] = scale (&self->saves[i], bytes);
  if (n > 0) {
    qsort (each_us, n, sizeof *each_us, compare);
    return each_us[n / 2];
  }
  if (self->bytes_per_us <= 0)
    return -1;
  double us = (double)bytes / self->bytes_per_us;
  return us < (double)(G_MAXINT64 / 4) ? (gint64)us : G_MAXINT64 / 4;
}

static gboolean
write_pieces (MusterStorage *storage, MusterStorageFile *file, guint n, GError **error)
{
  g_autofree char *piece = g_malloc (PIECE_BYTES);

  memset (piece, 0x5a, PIECE_BYTES);
  for (guint i = 0; i < n; i++)
    if (!muster_storage_append (storage, file, piece, PIECE_BYTES, error))
      return FALSE;
  return muster_storage_sync (storage, file, error);
}

/* Measures the speed of a small synced write in the directory, in bytes per microsecond; 0 if it
 * can't be written. The file is named as the temporary file of a save, so that it is removed with
 * those if the process dies here. */
static double
measure (MusterPreemption *self, MusterSaver *saver, const char *directory, guint64 bytes)
{
  g_autoptr (MusterStorage) storage = /* one that hangs takes no more than the grace */
      muster_storage_bound (muster_saver_storage (saver), MUSTER_WAIT_FOREVER, self->clock,
                            self->cancellable);
  guint32 id = (guint32)(muster_clock_random (self->clock) * G_MAXUINT32);
  g_autofree char *name = g_strdup_printf (".saving-%08x-speed.index", id);
  g_autofree char *path = g_build_filename (directory, name, NULL);
  guint n = (guint)CLAMP (bytes / PIECE_BYTES, 1, MOST_PIECES);
  gint64 began_us = muster_clock_now_us (self->clock);

  if (!muster_storage_make_directory (storage, directory, NULL))
    return 0;
  MusterStorageFile *file = muster_storage_create (storage, path, NULL);
  gboolean is_written = file != NULL && write_pieces (storage, file, n, NULL);
  gint64 took_us = muster_clock_now_us (self->clock) - began_us;
  if (file != NULL)
    (void)muster_storage_close (storage, file, NULL);
  (void)muster_storage_remove (storage, path, NULL);
  return is_written ? (double)(n * PIECE_BYTES) / (double)MAX (took_us, 1) : 0;
}

gint64
muster_preemption_estimate (MusterPreemption *self, guint64 *bytes)
{
  g_return_val_if_fail (self != NULL, -1);

  g_mutex_lock (&self->lock);
  g_autoptr (MusterSaver) saver = self->saver != NULL ? g_object_ref (self->saver) : NULL;
  g_autofree char *directory = g_strdup (self->directory);
  gboolean is_measured = self->n_saves > 0 || self->bytes_per_us > 0;
  g_mutex_unlock (&self->lock);
  if (saver == NULL)
    return -1;
  guint64 size = muster_saver_estimate_bytes (saver);
  double bytes_per_us = is_measured ? 0 : measure (self, saver, directory, size);

  g_mutex_lock (&self->lock);
  if (bytes_per_us > 0)
    self->bytes_per_us = bytes_per_us;
  gint64 estimate_us = muster_preemption_known_locked (self, size);
  g_mutex_unlock (&self->lock);
  if (bytes != NULL)
    *bytes = size;
  return estimate_us;
}

/* --- saving --- */

/* TRUE if the machine that is preempted may take it with it. Nor does it tell how long the last
 * save will take, which goes to the directory itself. */
static gboolean
is_in_fast_tier_locked (const MusterPreemption *self, const char *prefix)
{
  return self->saver != NULL &&
         muster_saver_tier_of (self->saver, prefix) < muster_saver_n_fast_tiers (self->saver);
}

static void
note_durable_locked (MusterPreemption *self, gint64 step, const char *prefix, guint64 bytes,
                     gint64 took_us)
{
  if (is_in_fast_tier_locked (self, prefix))
    return;
  if (took_us > 0) {
    self->saves[self->n_saves % MUSTER_PREEMPTION_SAVES] = (MusterMeasuredSave){bytes, took_us};
    self->n_saves++;
  }
  self->durable_step = step;
  g_free (self->durable);
  self->durable = g_strdup (prefix);
  self->durable_us = muster_clock_now_us (self->clock);
}

void
muster_preemption_note_durable (MusterPreemption *self, gint64 step, const char *prefix,
                                guint64 bytes, gint64 took_us)
{
  g_return_if_fail (self != NULL && prefix != NULL);
  g_mutex_lock (&self->lock);
  note_durable_locked (self, step, prefix, bytes, took_us);
  g_mutex_unlock (&self->lock);
}

static char *
describe_locked (MusterPreemption *self, gint64 left_us, gboolean in_step)
{
  g_autofree char *takes = muster_format_duration (MAX (self->needed_us, 0));
  g_autofree char *left = left_us > 0 ? muster_format_duration (left_us) : g_strdup ("nothing");
  g_autofree char *grace = muster_format_duration (self->grace_us);
  g_autofree char *size = muster_format_size (self->needed_bytes);
  g_autoptr (GString) text = g_string_new (NULL);

  if (in_step)
    g_string_append (text, "the running step took too long: ");
  g_string_append_printf (text, "a checkpoint of about %s ", size);
  if (self->needed_us >= 0)
    g_string_append_printf (text, "takes about %s", takes);
  else
    g_string_append (text, "is to be saved");
  g_string_append_printf (text, ", and %s of the %s grace %s left to save in", left, grace,
                          left_us > 0 ? "are" : "is");
  return g_strdup (text->str);
}

gboolean
muster_preemption_fits_locked (MusterPreemption *self, gint64 needed_us, guint64 bytes,
                               gboolean is_late)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  gint64 left_us = MAX (muster_preemption_deadline_locked (self) - now_us, 0);
  self->needed_us = needed_us;
  self->needed_bytes = bytes;
  self->needs_us = needed_us < 0 ? -1 : now_us - self->requested_us + needed_us + self->reserve_us;
  self->is_refused = is_late || needed_us > left_us || left_us == 0;
  /* If the whole grace is too short for a save, that is the reason to report. */
  gboolean in_step =
      is_late && self->ended_us == 0 && needed_us < self->grace_us - self->reserve_us;
  if (self->is_refused && self->why == NULL)
    self->why = describe_locked (self, left_us, in_step);
  return !self->is_refused;
}

/* Returns TRUE if the save at the end may begin. If its duration is unknown it is tried, as it is
 * cancelled in time. */
static gboolean
may_begin (MusterPreemption *self, GError **error)
{
  guint64 bytes = 0;
  gint64 needed_us = muster_preemption_estimate (self, &bytes);
  g_mutex_lock (&self->lock);
  gboolean fits = muster_preemption_fits_locked (self, needed_us, bytes, FALSE);
  if (!fits)
    muster_fail (error, MUSTER_ERROR_DEADLINE_EXCEEDED, "%s", self->why);
  g_mutex_unlock (&self->lock);
  return fits;
}

/* why (nullable): the reason that there is no checkpoint. */
static void
end_saving_locked (MusterPreemption *self, gboolean is_last, const char *why)
{
  self->is_saving = FALSE;
  if (is_last) {
    self->was_saved = TRUE;
    self->ended_us = muster_clock_now_us (self->clock);
    if (why != NULL && self->why == NULL)
      self->why = g_strdup (why);
  }
  muster_preemption_nudge_locked (self);
}

gboolean
muster_preemption_begin_save (MusterPreemption *self, MusterPreemptionSave *save, GError **error)
{
  muster_require (error, FALSE, self, save);

  const gboolean is_last = muster_preemption_is_requested (self);
  gboolean may = !is_last || may_begin (self, error);
  g_mutex_lock (&self->lock);
  if (may) {
    save->is_last = is_last;
    if (is_last)
      save->deadline_us = MIN (save->deadline_us, muster_preemption_deadline_locked (self));
    self->is_saving = TRUE;
    muster_preemption_nudge_locked (self);
  } else {
    end_saving_locked (self, TRUE, NULL); /* the reason has been reported */
  }
  g_mutex_unlock (&self->lock);
  return may;
}

void
muster_preemption_set_saving (MusterPreemption *self, gboolean is_saving)
{
  g_return_if_fail (self != NULL);

  g_mutex_lock (&self->lock);
  self->is_saving = is_saving;
  muster_preemption_nudge_locked (self);
  g_mutex_unlock (&self->lock);
}

gint64
muster_preemption_bound (MusterPreemption *self, gint64 deadline_us)
{
  g_return_val_if_fail (self != NULL, deadline_us);

  if (!muster_preemption_is_requested (self))
    return deadline_us;
  g_mutex_lock (&self->lock);
  const gint64 grace_us = muster_preemption_deadline_locked (self);
  g_mutex_unlock (&self->lock);
  return MIN (deadline_us, grace_us);
}

void
muster_preemption_end_save (MusterPreemption *self, const MusterPreemptionSave *save,
                            const MusterSaved *saved, const GError *failure)
{
  g_return_if_fail (self != NULL && save != NULL && (saved != NULL || failure != NULL));

  const char *why = failure != NULL ? failure->message : saved->skipped ? saved->why : NULL;
  g_mutex_lock (&self->lock);
  if (failure == NULL && !saved->skipped)
    note_durable_locked (self, saved->step, saved->prefix, MAX (saved->bytes, save->bytes),
                         MAX (saved->took_us, 1));
  end_saving_locked (self, save->is_last, why);
  g_mutex_unlock (&self->lock);
}

/* --- the report, as data and as text --- */

static MusterPreemptionOutcome
outcome_locked (const MusterPreemption *self)
{
  if (self->ended_us == 0)
    return MUSTER_PREEMPTION_UNDER_WAY;
  if (self->is_refused)
    return MUSTER_PREEMPTION_NOT_BEGUN;
  if (self->has_hooks && self->saver == NULL)
    return MUSTER_PREEMPTION_NO_SAVE;
  if (self->why != NULL)
    return MUSTER_PREEMPTION_GIVEN_UP;
  if (!self->has_hooks)
    return MUSTER_PREEMPTION_NO_SAVE;
  return self->durable != NULL && (self->is_all_saved || self->durable_us >= self->requested_us)
             ? MUSTER_PREEMPTION_SAVED
             : MUSTER_PREEMPTION_GIVEN_UP;
}

gboolean
muster_preemption_report (MusterPreemption *self, MusterPreemptionReport *report)
{
  g_return_val_if_fail (self != NULL && report != NULL, FALSE);

  gboolean is_requested = muster_preemption_is_requested (self);
  *report = (MusterPreemptionReport){.needed_us = -1, .needs_us = -1, .durable_step = -1};
  g_mutex_lock (&self->lock);
  report->grace_us = self->grace_us;
  report->durable_step = self->durable_step;
  report->durable = g_strdup (self->durable);
  if (is_requested) {
    report->outcome = outcome_locked (self);
    report->is_drill = self->is_drill;
    report->signal_number = self->signal_number;
    gboolean is_saved = report->outcome == MUSTER_PREEMPTION_SAVED;
    gint64 until_us = is_saved ? MAX (self->durable_us, self->requested_us) : self->ended_us;
    if (until_us == 0)
      until_us = muster_clock_now_us (self->clock);
    report->took_us = until_us - self->requested_us;
    report->needed_us = self->needed_us;
    report->needs_us = self->needs_us;
    report->bytes = self->needed_bytes;
    report->why = g_strdup (self->why);
  }
  g_mutex_unlock (&self->lock);
  return is_requested;
}

void
muster_preemption_report_clear (MusterPreemptionReport *report)
{
  g_return_if_fail (report != NULL);
  g_clear_pointer (&report->durable, g_free);
  g_clear_pointer (&report->why, g_free);
}

/* "preempted (SIGTERM)", "a preemption" */
static char *
subject (const MusterPreemptionReport *report)
{
  if (report->is_drill)
    return g_strdup ("a preemption");
  if (report->signal_number == 0)
    return g_strdup ("preempted");
  return g_strdup_printf ("preempted (%s)", strsignal (report->signal_number));
}

static char *
durable_text (const MusterPreemptionReport *report)
{
  if (report->durable_step < 0)
    return g_strdup ("no checkpoint is durable yet");
  return g_strdup_printf ("the last durable step is %" G_GINT64_FORMAT, report->durable_step);
}

/* The grace that would have been enough. */
static char *
advice (const MusterPreemptionReport *report)
{
  if (report->needs_us <= report->grace_us)
    return g_strdup ("");
  g_autofree char *needs = muster_format_duration (report->needs_us);

  return g_strdup_printf ("; it needs a grace of %s", needs);
}

static char *
saved_text (const MusterPreemptionReport *report, const char *who)
{
  g_autofree char *took = muster_format_duration (report->took_us);
  g_autofree char *grace = muster_format_duration (report->grace_us);
  gint64 margin_us = report->grace_us - report->took_us;
  g_autofree char *margin = muster_format_duration (margin_us < 0 ? -margin_us : margin_us);
  const char *sign = margin_us < 0 ? "too long" : "to spare";

  if (report->is_drill)
    return g_strdup_printf ("%s would take %s of the %s grace: %s %s", who, took, grace, margin,
                            sign);
  return g_strdup_printf ("%s: step %" G_GINT64_FORMAT " was durable after %s of the %s grace", who,
                          report->durable_step, took, grace);
}

char *
muster_preemption_report_text (const MusterPreemptionReport *report)
{
  g_return_val_if_fail (report != NULL, NULL);

  g_autofree char *who = subject (report);
  g_autofree char *durable = durable_text (report);
  g_autofree char *further = advice (report);
  const char *why = report->why != NULL ? report->why : "it ended before the save";

  switch (report->outcome) {
  case MUSTER_PREEMPTION_SAVED:
    return saved_text (report, who);
  case MUSTER_PREEMPTION_NOT_BEGUN:
    return g_strdup_printf ("%s%s no save was begun: %s%s; %s", who,
                            report->is_drill ? " would end without one:" : ":", why, further,
                            durable);
  case MUSTER_PREEMPTION_GIVEN_UP:
    return g_strdup_printf ("%s%s %s%s; %s", who,
                            report->is_drill ? " would end without a save:" : ": not saved:", why,
                            further, durable);
  case MUSTER_PREEMPTION_NO_SAVE:
    return g_strdup_printf ("%s: nothing to save", who);
  case MUSTER_PREEMPTION_UNDER_WAY:
    return g_strdup_printf ("%s: in progress", who);
  case MUSTER_PREEMPTION_NOT_ASKED:
  default:
    return g_strdup ("not preempted");
  }
}

gboolean
muster_preemption_explains (MusterPreemption *self, const GError *failure)
{
  g_return_val_if_fail (self != NULL, FALSE);

  if (!muster_preemption_is_requested (self))
    return FALSE;
  return failure == NULL || g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_CANCELLED) ||
         muster_error_is (failure, MUSTER_ERROR_CANCELLED) ||
         muster_error_is (failure, MUSTER_ERROR_DEADLINE_EXCEEDED) ||
         muster_failure_of (failure) == MUSTER_FAILURE_UNREACHABLE ||
         muster_error_is (failure, MUSTER_ERROR_ABORTED);
}

/* --- the object --- */

static void
muster_preemption_finalize (GObject *object)
{
  MusterPreemption *self = MUSTER_PREEMPTION (object);
  muster_preemption_stop_watching (self);
  g_clear_object (&self->clock);
  g_clear_object (&self->cancellable);
  g_clear_object (&self->requested);
  g_clear_object (&self->nudge);
  g_clear_object (&self->saver);
  g_clear_object (&self->coordinator);
  g_free (self->directory);
  g_free (self->durable);
  g_free (self->why);
  g_mutex_clear (&self->lock);
  G_OBJECT_CLASS (muster_preemption_parent_class)->finalize (object);
}

static void
muster_preemption_class_init (MusterPreemptionClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = muster_preemption_finalize;
}

static void
muster_preemption_init (MusterPreemption *self)
{
  g_mutex_init (&self->lock);
  self->cancellable = g_cancellable_new ();
  self->requested = g_cancellable_new ();
  self->nudge = g_cancellable_new ();
  self->event_fd = -1;
  self->needed_us = self->needs_us = -1;
  self->durable_step = -1;
}
