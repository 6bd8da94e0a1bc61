// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"
#include "train/hooks/event_writer.h"
#include "train/monitored/hook.h"
#include "train/preemption/preemption.h"

G_BEGIN_DECLS

/* The standard hooks, with TensorFlow's names and semantics (behaviours MON.62 to MON.87). Strings
 * and arrays are copied. Contradictory options are INVALID_ARGUMENT at once; a tensor, op or global
 * step that the graph lacks is INVALID_ARGUMENT at begin, before there is a session. Times are
 * microseconds. */

/* Stops at a global step: num_steps after the first session's, or at last_step. Exactly one is
 * given, above 0. */
MusterHook *muster_stop_at_step_hook_new (gint64 num_steps, gint64 last_step, GError **error);

/* --- checkpoints --- */

#define MUSTER_TYPE_CHECKPOINT_SAVER_HOOK (muster_checkpoint_saver_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterCheckpointSaverHook, muster_checkpoint_saver_hook, MUSTER,
                      CHECKPOINT_SAVER_HOOK, MusterHook)

/* Called around each save. after_save FALSE requests a stop; the other listeners are still called.
 * Work in the session must end by the deadline and the cancellable (nullable) of the hook's
 * function. */
typedef struct {
  void (*begin) (gpointer user_data);
  void (*before_save) (MusterSession *session, gint64 step, gint64 deadline_us,
                       GCancellable *cancellable, gpointer user_data);
  gboolean (*after_save) (MusterSession *session, gint64 step, const char *prefix,
                          gint64 deadline_us, GCancellable *cancellable, gpointer user_data);
  void (*end) (MusterSession *session, gint64 step, gint64 deadline_us, GCancellable *cancellable,
               gpointer user_data);
  /* The full result of a save, before after_save; also of one skipped for lack of space, which
   * isn't a failure if this is set. */
  void (*saved) (const MusterSaved *saved, gpointer user_data);
  /* A checkpoint of a fast tier has been copied to a lower one. */
  void (*copied) (const MusterTierCopied *copied, gpointer user_data);
  gpointer user_data;
} MusterSaverListener;

typedef struct {
  const char *checkpoint_dir;
  gint64 save_us; /* exactly one of the two, or save_auto */
  gint64 save_steps;
  /* The hook chooses the interval from what saves cost and how often the job fails
   * (train/goodput/save_interval.h), and logs its choice. Saves hold training for at most this
   * share of the time; 0: 0.01. */
  gboolean save_auto;
  double save_share;
  MusterSaver *saver;   /* (nullable) NULL: one for the scaffold's SaverDef */
  gboolean is_blocking; /* TRUE: training waits until each checkpoint is durable */
  gint64 steps_per_run; /* steps by which a run advances the global step; 0: 1 */
  const MusterSaverListener *listeners;
  gsize n_listeners;
  MusterEventWriter *writer; /* (nullable) records the graph and each save */
  /* A failed save is counted, with a warning, and training continues; this many in a row fail the
   * run. 0: no limit. */
  guint most_failures_in_a_row;
  MusterPreemption *preemption; /* (nullable) the preemption that limits its saves:
                                   train/preemption/preemption.h */
  MusterClock *clock;           /* NULL: the machine's */
} MusterCheckpointSaverOptions;

/* Saves at the first session's step (unless it was just restored from there), then at the interval,
 * and at the end. If the lease is lost, a save fails the run (FAILED_PRECONDITION).
 *
 * Checkpoints are written in the background unless is_blocking is set: a save delays the step only
 * by its snapshot (saver/async/async_saver.h). Listeners and the run receive its result at the end
 * of the first step after it is durable or has failed. One checkpoint is written at a time; a save
 * that falls due meanwhile starts when it is done. The save at the end waits for the one in flight,
 * then blocks. A model without a SaveV2 op, and a master that accepts no further nodes, are saved
 * as with is_blocking.
 *
 * If the saver has fast tiers (MusterSaverOptions.fast), each has an interval of its own, besides
 * that of checkpoint_dir. A save goes to the fastest tier in use; the others that are due then get
 * a copy in the background. The last save of a run goes to checkpoint_dir itself. A failed copy to
 * checkpoint_dir counts as a failed save. */
MusterHook *muster_checkpoint_saver_hook_new (const MusterCheckpointSaverOptions *options,
                                              GError **error);
/* The number of failed saves; last (nullable out) is the last failure, borrowed until the next
 * save. */
guint muster_checkpoint_saver_hook_failures (MusterHook *self, const GError **last);
/* The last step saved, in any tier, and its checkpoint, *prefix (nullable out) (borrowed), or -1
 * and NULL. */
gint64 muster_checkpoint_saver_hook_durable (MusterHook *self, const char **prefix);

/* --- observing --- */

/* Writes the steps per second at an interval (exactly one of the two) to writer (nullable), as
 * "global_step/sec", and to the log. */
MusterHook *muster_step_counter_hook_new (gint64 every_steps, gint64 every_us,
                                          MusterEventWriter *writer, MusterClock *clock,
                                          GError **error);

/* Receives a line of text, borrowed from the hook. */
typedef void (*MusterLogLine) (const char *text, gpointer user_data);

typedef struct {
  const char *const *tensors; /* NULL-terminated */
  gint64 every_n_iter;        /* in runs of this session, not global steps */
  gint64 every_us;
  gboolean at_end;   /* also at the end; an interval is then optional */
  MusterLogLine log; /* NULL: g_message () */
  gpointer user_data;
  MusterClock *clock;
} MusterLoggingOptions;

MusterHook *muster_logging_hook_new (const MusterLoggingOptions *options, GError **error);

/* If loss is NaN, fails the run ("NaN loss during training.", INVALID_ARGUMENT, like TensorFlow's
 * CheckNumerics), or warns and requests a stop. */
MusterHook *muster_nan_hook_new (const char *loss, gboolean fails);

/* Writes the value of summary_op (nullable) to writer (nullable), at the first run and then at an
 * interval (exactly one of the two). NULL: the scaffold's; if it has none, nothing is written. */
MusterHook *muster_summary_saver_hook_new (const char *summary_op, gint64 save_steps,
                                           gint64 save_us, MusterEventWriter *writer,
                                           MusterClock *clock, GError **error);

/* Profiles a run at an interval (exactly one of the two), never the first: requests a full trace
 * from the master, writes output_dir/timeline-STEP.json for chrome://tracing and Perfetto, and the
 * run's metadata as "step_STEP" to writer (nullable). If the master doesn't trace, this is logged
 * once. */
MusterHook *muster_profiler_hook_new (gint64 save_steps, gint64 save_us, const char *output_dir,
                                      MusterEventWriter *writer, MusterClock *clock,
                                      GError **error);

/* --- input and output --- */

/* Waits before its first run until the global step has reached a step, to delay a worker's start.
 * DEADLINE_EXCEEDED at the run's deadline. */
MusterHook *muster_global_step_waiter_hook_new (gint64 wait_until_step, MusterClock *clock);

/* Runs ops and fetches tensors once, at the end. Values are available afterwards (borrowed), NULL
 * before. */
MusterHook *muster_final_ops_hook_new (const MusterStep *step);
MusterTensor *muster_final_ops_hook_value (MusterHook *self, gsize fetched);

/* At a clean end waits until the other tasks have stopped: until the global step hasn't changed for
 * quiet_us, at most timeout_us. For a chief, before the hook that saves, so that the workers' last
 * steps aren't lost (DMON.14). */
MusterHook *muster_finish_barrier_hook_new (gint64 quiet_us, gint64 timeout_us, MusterClock *clock);

/* Feeds func's tensors before each run: feeds[n], transfer full. FALSE with an error ends the run;
 * OUT_OF_RANGE is the end of the input. func must return by the run's deadline (on the monitored
 * session's clock), or when cancellable (nullable) is cancelled. */
typedef gboolean (*MusterFeedFunc) (MusterTensor **feeds, gint64 deadline_us,
                                    GCancellable *cancellable, gpointer user_data, GError **error);
MusterHook *muster_feed_func_hook_new (const char *const *tensors, MusterFeedFunc func,
                                       gpointer user_data, GDestroyNotify destroy);

G_END_DECLS
