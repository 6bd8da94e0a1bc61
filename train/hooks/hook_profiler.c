// SPDX-License-Identifier: Apache-2.0
#include "base/log_private.h"
#include "base/require_private.h"
#include "checkpoint/store/storage.h"
#include "train/hooks/hooks_private.h"
#include "train/hooks/timeline_private.h"

/* RunOptions with trace_level FULL_TRACE */
static const guint8 full_trace[] = {1 << 3, 3};

#define MUSTER_TYPE_PROFILER_HOOK (muster_profiler_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterProfilerHook, muster_profiler_hook, MUSTER, PROFILER_HOOK, MusterHook)

struct _MusterProfilerHook {
  MusterHook parent;
  MusterStepTimer timer;
  MusterClock *clock;        /* (owned) the timer's */
  char *directory;           /* (owned) */
  MusterEventWriter *writer; /* (owned) (nullable) */
  GBytes *options;           /* (owned) */
  gint64 next_step;          /* the expected step of the next run; -1 at first */
  gint64 behind;             /* how far the fetched step is behind the run: 0 or 1 */
  gboolean is_due;
  gboolean has_warned;
};

G_DEFINE_FINAL_TYPE (MusterProfilerHook, muster_profiler_hook, MUSTER_TYPE_HOOK)

static gboolean
profiler_begin (MusterHook *hook, MusterScaffold *scaffold, GError **error)
{
  return muster_hook_need_global_step (scaffold, "ProfilerHook", error) &&
         muster_storage_make_directory (muster_local_storage (),
                                        MUSTER_PROFILER_HOOK (hook)->directory, error);
}

static gboolean
profiler_before_run (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  MusterProfilerHook *self = MUSTER_PROFILER_HOOK (hook);
  self->is_due = self->next_step >= 0 && muster_step_timer_is_due (&self->timer, self->next_step);
  if (self->is_due)
    muster_run_context_add_options (context, self->options);
  return TRUE;
}

static gboolean
write_timeline (MusterProfilerHook *self, GBytes *metadata, gint64 step, GError **error)
{
  GError *failure = NULL;
  g_autofree char *json = metadata != NULL ? muster_timeline_of (metadata, &failure) : NULL;
  g_autofree char *name = g_strdup_printf ("timeline-%" G_GINT64_FORMAT ".json", step);
  g_autofree char *path = g_build_filename (self->directory, name, NULL);
  g_autofree char *tag = g_strdup_printf ("step_%" G_GINT64_FORMAT, step);

  if (failure != NULL) {
    g_propagate_error (error, failure);
    return FALSE;
  }
  if (json == NULL && !self->has_warned)
    muster_log (G_LOG_LEVEL_MESSAGE, "profile", "MESSAGE",
                "the master returned no trace; no timelines are written");
  self->has_warned |= json == NULL;
  return json == NULL ||
         (muster_storage_publish (muster_local_storage (), path, json, strlen (json), error) &&
          (self->writer == NULL ||
           muster_event_writer_add_run_metadata (self->writer, tag, metadata, step, error)));
}

/* Skips the first run, which counts as profiled, because it is slower than all others. */
static gboolean
profiler_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterProfilerHook *self = MUSTER_PROFILER_HOOK (hook);
  gint64 beside = muster_run_context_global_step (context);
  gint64 step = beside + self->behind;
  gboolean is_first = self->next_step < 0;
  if (is_first || self->is_due) {
    step = muster_run_context_step_now (context, error);
    if (step < 0)
      return FALSE;
    self->behind = step > beside;
    (void)muster_step_timer_trigger (&self->timer, is_first ? step - 1 : step, NULL, NULL);
  }
  self->next_step = step + 1;
  return !self->is_due || write_timeline (self, muster_run_context_metadata (context), step, error);
}

static char **
profiler_claims (MusterHook *hook)
{
  char **claims = g_new0 (char *, 2);
  claims[0] = muster_hook_claim_of_directory ("writes timelines to",
                                              MUSTER_PROFILER_HOOK (hook)->directory);
  return claims;
}

static void
profiler_finalize (GObject *object)
{
  MusterProfilerHook *self = MUSTER_PROFILER_HOOK (object);
  g_free (self->directory);
  g_clear_object (&self->clock);
  g_clear_pointer (&self->writer, muster_event_writer_unref);
  g_bytes_unref (self->options);
  G_OBJECT_CLASS (muster_profiler_hook_parent_class)->finalize (object);
}

static void
muster_profiler_hook_class_init (MusterProfilerHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = profiler_finalize;
  MUSTER_HOOK_CLASS (klass)->begin = profiler_begin;
  MUSTER_HOOK_CLASS (klass)->claims = profiler_claims;
  MUSTER_HOOK_CLASS (klass)->before_run = profiler_before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = profiler_after_run;
}

static void
muster_profiler_hook_init (MusterProfilerHook *self)
{
  self->next_step = -1;
  self->options = g_bytes_new_static (full_trace, sizeof full_trace);
}

MusterHook *
muster_profiler_hook_new (gint64 save_steps, gint64 save_us, const char *output_dir,
                          MusterEventWriter *writer, MusterClock *clock, GError **error)
{
  muster_require (error, NULL, output_dir);

  if (!muster_storage_check_path (NULL, "output directory", output_dir, error))
    return NULL;
  g_autoptr (MusterProfilerHook) self = g_object_new (MUSTER_TYPE_PROFILER_HOOK, NULL);

  self->directory = g_strdup (output_dir);
  self->clock = g_object_ref (clock ? clock : muster_system_clock ());
  self->writer = writer != NULL ? muster_event_writer_ref (writer) : NULL;
  if (!muster_step_timer_init (&self->timer, save_us, save_steps, self->clock, error))
    return NULL;
  return MUSTER_HOOK (g_steal_pointer (&self));
}
