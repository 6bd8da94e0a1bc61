// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/hooks/event_writer.h"
#include "train/monitored/hook.h"
#include "train/preemption/preemption.h"

G_BEGIN_DECLS

/* The stock hooks, with TensorFlow's names and meanings (behaviours MON.62 to MON.87). Strings and
 * arrays are copied. What contradicts itself is INVALID_ARGUMENT at once; a tensor, op or global
 * step that the graph lacks is INVALID_ARGUMENT at begin, before there is a session. Times are
 * microseconds. */

/* Stops at a global step: after num_steps more from where the first session began, or at last_step.
 * Exactly one is given, above 0. */
MusterHook *muster_stop_at_step_hook_new (gint64 num_steps, gint64 last_step, GError **error);

/* --- checkpoints --- */

#define MUSTER_TYPE_CHECKPOINT_SAVER_HOOK (muster_checkpoint_saver_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterCheckpointSaverHook, muster_checkpoint_saver_hook, MUSTER,
                      CHECKPOINT_SAVER_HOOK, MusterHook)

/* Around each save. after_save FALSE asks for a stop; the others are called all the same. What they
 * do in the session ends by the deadline and the cancellable (nullable) of the hook's verb. */
typedef struct {
  void (*begin) (gpointer user_data);
  void (*before_save) (MusterSession *session, gint64 step, gint64 deadline_us,
                       GCancellable *cancellable, gpointer user_data);
  gboolean (*after_save) (MusterSession *session, gint64 step, const char *prefix,
                          gint64 deadline_us, GCancellable *cancellable, gpointer user_data);
  void (*end) (MusterSession *session, gint64 step, gint64 deadline_us, GCancellable *cancellable,
               gpointer user_data);
  /* With all there is to tell of a save, before after_save; and of one that was skipped for want of
   * room, which is no failure where somebody hears of it here. */
  void (*saved) (const MusterSaved *saved, gpointer user_data);
  gpointer user_data;
} MusterSaverListener;

typedef struct {
  const char *checkpoint_dir;
  gint64 save_us; /* exactly one of these two */
  gint64 save_steps;
  MusterSaver *saver;   /* (nullable) NULL: one for the scaffold's own SaverDef */
  gint64 steps_per_run; /* by how many a run advances the global step; 0: 1 */
  const MusterSaverListener *listeners;
  gsize n_listeners;
  MusterEventWriter *writer; /* (nullable) gets the graph, and a record of each save */
  /* A save that fails warns, is counted, and training goes on; so many in a row fail the run. 0:
   * never. */
  guint most_failures_in_a_row;
  MusterPreemption
      *preemption;    /* (nullable) its saves are this one's: train/preemption/preemption.h */
  MusterClock *clock; /* NULL: the machine's */
} MusterCheckpointSaverOptions;

/* Saves at the first session's step (unless that very step was just restored), then as often as
 * asked, and at the end. With a lease that is lost a save fails the run (FAILED_PRECONDITION). */
MusterHook *muster_checkpoint_saver_hook_new (const MusterCheckpointSaverOptions *options,
                                              GError **error);
/* How many saves have failed, and with what the last (nullable out) one did, borrowed until the
 * next save. */
guint muster_checkpoint_saver_hook_failures (MusterHook *self, const GError **last);
/* The last durable step and its checkpoint, *prefix (nullable out) (borrowed), or -1 and NULL. */
gint64 muster_checkpoint_saver_hook_durable (MusterHook *self, const char **prefix);

/* --- looking --- */

/* Steps per second, every so often (exactly one of the two): to writer (nullable) under
 * "global_step/sec", and to the log. */
MusterHook *muster_step_counter_hook_new (gint64 every_steps, gint64 every_us,
                                          MusterEventWriter *writer, MusterClock *clock,
                                          GError **error);

/* A line of text; text is the hook's. */
typedef void (*MusterLogLine) (const char *text, gpointer user_data);

typedef struct {
  const char *const *tensors; /* NULL-terminated */
  gint64 every_n_iter;        /* runs of this session, not global steps */
  gint64 every_us;
  gboolean at_end;   /* once more at the end; then neither of the two is needed */
  MusterLogLine log; /* NULL: g_message () */
  gpointer user_data;
  MusterClock *clock;
} MusterLoggingOptions;

MusterHook *muster_logging_hook_new (const MusterLoggingOptions *options, GError **error);

/* A loss that is no number fails the run ("NaN loss during training.", INVALID_ARGUMENT, as
 * TensorFlow's CheckNumerics), or warns and asks for a stop. */
MusterHook *muster_nan_hook_new (const char *loss, gboolean fails);

/* Writes what summary_op (nullable) yields to writer (nullable), at the first run and then every so
 * often (exactly one of the two). NULL: the scaffold's; where it has none, nothing is written. */
MusterHook *muster_summary_saver_hook_new (const char *summary_op, gint64 save_steps,
                                           gint64 save_us, MusterEventWriter *writer,
                                           MusterClock *clock, GError **error);

/* Profiles a run every so often (exactly one of the two), never the first: asks the master for a
 * full trace of it, writes output_dir/timeline-STEP.json, which chrome://tracing and Perfetto open,
 * and gives writer (nullable) the run's metadata as "step_STEP". A master that traces nothing is
 * told of once in the log. */
MusterHook *muster_profiler_hook_new (gint64 save_steps, gint64 save_us, const char *output_dir,
                                      MusterEventWriter *writer, MusterClock *clock,
                                      GError **error);

/* --- in and out --- */

/* Waits, before its first run, until the global step has reached a step: late workers.
 * DEADLINE_EXCEEDED where the run's deadline comes first. */
MusterHook *muster_global_step_waiter_hook_new (gint64 wait_until_step, MusterClock *clock);

/* Runs ops and fetches tensors once, at the end; values are there afterwards (borrowed), NULL
 * before. */
MusterHook *muster_final_ops_hook_new (const MusterStep *step);
MusterTensor *muster_final_ops_hook_value (MusterHook *self, gsize fetched);

/* At a clean end waits until the others have stopped too: until the global step hasn't moved for
 * quiet_us, at most timeout_us. A chief's, before the hook that saves, so that what workers still
 * train isn't lost (DMON.14). */
MusterHook *muster_finish_barrier_hook_new (gint64 quiet_us, gint64 timeout_us, MusterClock *clock);

/* Feeds what func gives, before each run: feeds[n], transfer full. FALSE with an error ends the
 * run; OUT_OF_RANGE is the end of the input. What func waits for ends by the run's deadline (on the
 * monitored session's clock) and cancellable (nullable). */
typedef gboolean (*MusterFeedFunc) (MusterTensor **feeds, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);
MusterHook *muster_feed_func_hook_new (const char *const *tensors, MusterFeedFunc func,
                                       gpointer user_data, GDestroyNotify destroy);

G_END_DECLS
