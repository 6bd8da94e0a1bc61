// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/async/save_metrics.h"
#include "saver/async/save_ticket.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterAsyncSaver saves while training continues. A save blocks its caller for one step, which
 * takes a snapshot (saver/async/snapshot.h). A thread of the saver then writes it through the
 * MusterSaver, with lease, publishing, state file and retention. "latest" changes only when a
 * checkpoint is durable. Any thread. A call on the saver from its own saveable or `finished`
 * callback fails with FAILED_PRECONDITION, since it would wait for itself. */

#define MUSTER_TYPE_ASYNC_SAVER (muster_async_saver_get_type ())
G_DECLARE_FINAL_TYPE (MusterAsyncSaver, muster_async_saver, MUSTER, ASYNC_SAVER, GObject)

/* What happens when the previous save hasn't ended. */
typedef enum {
  MUSTER_SAVES_BLOCK, /* the caller waits for it */
  MUSTER_SAVES_SKIP,  /* the new one is skipped, as its ticket reports */
  /* One waits while another is written. A third replaces the waiting one, whose ticket reports
     that. Two snapshots are held. */
  MUSTER_SAVES_REPLACE,
} MusterSavePolicy;

typedef struct {
  MusterSavePolicy policy;
  /* Maximum size of the snapshots that aren't durable yet: as many as fit, at most four. A model
   * that is larger is saved synchronously. 0: one snapshot of any size, and a second for REPLACE.
   */
  guint64 budget_bytes;
  /* (nullable) Called on the saver's thread after each save there, before sync returns. Of one
   * save: muster_save_ticket_when_ended (). */
  MusterSaveFinished finished;
  gpointer finished_data;
  /* How long the last unref waits for a running save; 0: 5 s. To choose another time, call shutdown
   * first. */
  gint64 dispose_wait_us;
} MusterAsyncOptions;

/* Creates no thread, node or file before the first save. INVALID_ARGUMENT without a saver or
 * session, and for a saver without variables (allow_empty). options may be NULL. */
MusterAsyncSaver *muster_async_saver_new (MusterSaver *saver, MusterSession *session,
                                          const MusterAsyncOptions *options, GError **error);

/* Sets the saver and session for later saves, after the graph changed or the master lost the
 * session. Running saves aren't affected. */
void muster_async_saver_set_model (MusterAsyncSaver *self, MusterSaver *saver,
                                   MusterSession *session);

/* Optional, before training and after set_model: does the preparations of the first save. It adds
 * the nodes and makes the master allocate a snapshot's memory once, so that the first step after
 * the first save is as fast as after later ones. */
gboolean muster_async_saver_prepare (MusterAsyncSaver *self, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);

/* Saves as DIRECTORY/BASE-STEP; step below 0: the save counter's next number. Returns a ticket
 * (transfer full) once the snapshot is staged, before any file exists. An unreported error of an
 * earlier background save is returned instead of saving. */
MusterSaveTicket *muster_async_saver_save (MusterAsyncSaver *self, const char *directory,
                                           gint64 step, gint64 deadline_us,
                                           GCancellable *cancellable, GError **error);

/* The same with fast tiers, of which these are due (MusterSaveHow.due). The ticket's path is in the
 * tier that was in use when it was staged; its result names the one that has the checkpoint. */
MusterSaveTicket *muster_async_saver_save_in_tiers (MusterAsyncSaver *self, const char *directory,
                                                    gint64 step, MusterTierSet due,
                                                    gint64 deadline_us, GCancellable *cancellable,
                                                    GError **error);

/* The same to the given prefix, without counter, state file and retention. */
MusterSaveTicket *muster_async_saver_write (MusterAsyncSaver *self, const char *prefix,
                                            gint64 deadline_us, GCancellable *cancellable,
                                            GError **error);

/**
 * muster_async_saver_restore:
 * @options: the checkpoint or directory, and what is compatible
 * @restored: (nullable): what was restored
 *
 * Waits for running saves, then restores as muster_saver_restore () does; a background error is
 * kept for the next save or sync. The counter continues from the number of the restored
 * checkpoint, or from its own if that is higher.
 */
gboolean muster_async_saver_restore (MusterAsyncSaver *self, const MusterRestoreOptions *options,
                                     MusterRestored *restored, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);
/* The same from exactly this checkpoint. */
gboolean muster_async_saver_read (MusterAsyncSaver *self, const char *prefix, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/* Waits until no save is running, and no copy to a lower tier (saver/tiered.h). Returns the
 * background error that wasn't reported yet. */
gboolean muster_async_saver_sync (MusterAsyncSaver *self, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);
/* The same for saves alone. */
gboolean muster_async_saver_sync_saves (MusterAsyncSaver *self, gint64 deadline_us,
                                        GCancellable *cancellable, GError **error);

/* Refuses new saves and waits for running ones until the deadline; then they are cancelled, and
 * DEADLINE_EXCEEDED names the one that may be missing. Returns background errors like sync. May be
 * called again; any other call is FAILED_PRECONDITION afterwards. */
gboolean muster_async_saver_shutdown (MusterAsyncSaver *self, gint64 deadline_us,
                                      GCancellable *cancellable, GError **error);

/* The last number that was used for a save or restored; 0 initially. After a failure there may be
 * gaps; no number is used twice. */
gint64 muster_async_saver_save_counter (MusterAsyncSaver *self);
/* Sets the counter after a restore by other means. A higher value is kept. */
void muster_async_saver_set_save_counter (MusterAsyncSaver *self, gint64 counter);

/* The last background error: (nullable) (transfer full). This doesn't count as reporting it. */
GError *muster_async_saver_last_failure (MusterAsyncSaver *self);

/* muster_saver_status () of its saver: clear it. */
void muster_async_saver_status (MusterAsyncSaver *self, MusterSaveStatus *status);

/* The metrics of this saver. */
MusterSaveMetrics muster_async_saver_metrics (MusterAsyncSaver *self);

G_END_DECLS
