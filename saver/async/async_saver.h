// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/async/save_metrics.h"
#include "saver/async/save_ticket.h"
#include "saver/saver.h"

G_BEGIN_DECLS

/* MusterAsyncSaver saves while training goes on: a save holds its caller for one step, which sets
 * apart what is to be saved (saver/async/snapshot.h), and a thread of the saver's own writes it, by
 * the same MusterSaver with all that it does: the lease, publishing, the state file, retention.
 * "latest" moves only when a checkpoint is durable. Any thread. What is called from a saveable, or
 * from finished, on the saver that calls it, fails with FAILED_PRECONDITION: no save waits for
 * itself. */

#define MUSTER_TYPE_ASYNC_SAVER (muster_async_saver_get_type ())
G_DECLARE_FINAL_TYPE (MusterAsyncSaver, muster_async_saver, MUSTER, ASYNC_SAVER, GObject)

/* When the save before isn't done. */
typedef enum {
  MUSTER_SAVES_BLOCK, /* the caller waits for it */
  MUSTER_SAVES_SKIP,  /* this one isn't made: its ticket says so */
  /* One waits while one is written; a third takes the place of the one that waits, whose ticket
   * says so. Two snapshots are held. */
  MUSTER_SAVES_REPLACE,
} MusterSavePolicy;

/* Called on the saver's thread after each save there has ended, well or not, before sync returns.
 */
typedef void (*MusterSaveFinished) (MusterSaveTicket *ticket, gpointer user_data);

typedef struct {
  MusterSavePolicy policy;
  /* How many bytes of snapshots may be held that aren't durable: as many snapshots as fit, four at
   * most; a model that is larger is saved in the caller's time. 0: one snapshot, however large, and
   * a second for REPLACE. */
  guint64 budget_bytes;
  MusterSaveFinished finished; /* (nullable) */
  gpointer finished_data;
  /* How long the last unref waits for what is being written; 0: 5 s. Who calls shutdown first
   * decides for himself. */
  gint64 dispose_wait_us;
} MusterAsyncOptions;

/* No thread, no node and no file is made before the first save. INVALID_ARGUMENT without a saver or
 * session, and for a saver that saves nothing (allow_empty). options may be NULL. */
MusterAsyncSaver *muster_async_saver_new (MusterSaver *saver, MusterSession *session,
                                          const MusterAsyncOptions *options, GError **error);

/* From the next save on: the graph has changed (a new saver for it), or there is another session
 * after the master lost the last one. Saves under way end as they began. */
void muster_async_saver_set_model (MusterAsyncSaver *self, MusterSaver *saver,
                                   MusterSession *session);

/* Optional, before training begins, and after set_model: what the first save would have to do
 * first. The nodes are added, and the master takes the memory that training needs beside a snapshot
 * once, so that the first step after the first save is as quick as after later ones. */
gboolean muster_async_saver_prepare (MusterAsyncSaver *self, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);

/* Saves as DIRECTORY/BASE-STEP; step below 0: the save counter's next. Returns a ticket (transfer
 * full) once the snapshot is staged. The files aren't there yet. An error of an earlier save in the
 * background that nobody has heard of is reported here in place of a save. */
MusterSaveTicket *muster_async_saver_save (MusterAsyncSaver *self, const char *directory,
                                           gint64 step, gint64 deadline_us,
                                           GCancellable *cancellable, GError **error);

/* The same to this very prefix: counter, state file and retention are left alone. */
MusterSaveTicket *muster_async_saver_write (MusterAsyncSaver *self, const char *prefix,
                                            gint64 deadline_us, GCancellable *cancellable,
                                            GError **error);

/* Waits for what is being saved, then restores; a background error stays for the next save or sync.
 * The counter goes on from the number in the prefix, or from its own where that is higher. read is
 * the same. */
gboolean muster_async_saver_restore (MusterAsyncSaver *self, const char *prefix, gint64 deadline_us,
                                     GCancellable *cancellable, GError **error);
gboolean muster_async_saver_read (MusterAsyncSaver *self, const char *prefix, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/* Waits until nothing is under way, and reports what failed since it was last reported. */
gboolean muster_async_saver_sync (MusterAsyncSaver *self, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error);

/* Takes no more saves and waits for those under way, until the deadline: then they are cancelled,
 * and DEADLINE_EXCEEDED names the one that may be missing. Reports what failed, as sync. Again is
 * fine; everything else is FAILED_PRECONDITION afterwards. */
gboolean muster_async_saver_shutdown (MusterAsyncSaver *self, gint64 deadline_us,
                                      GCancellable *cancellable, GError **error);

/* The number last given to a save, or restored; 0 before. Numbers may have gaps, after a failure;
 * none comes twice. */
gint64 muster_async_saver_save_counter (MusterAsyncSaver *self);
/* For who has restored by other means. A counter that is higher already stays. */
void muster_async_saver_set_save_counter (MusterAsyncSaver *self, gint64 counter);

/* The last background error: (nullable) (transfer full); asking doesn't count as reporting it. */
GError *muster_async_saver_last_failure (MusterAsyncSaver *self);

/* The newest step that has come so far, each -1 before; all at one moment. */
typedef struct {
  gint64 requested, staged, written, durable;
} MusterSaveProgress;
MusterSaveProgress muster_async_saver_progress (MusterAsyncSaver *self);

/* This saver's own. */
MusterSaveMetrics muster_async_saver_metrics (MusterAsyncSaver *self);

G_END_DECLS
