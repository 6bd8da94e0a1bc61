// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/async/async_saver.h"
#include "saver/async/save_metrics_private.h"
#include "saver/async/snapshot_private.h"
#include "saver/saver_private.h"

G_BEGIN_DECLS

#define MUSTER_MAX_SNAPSHOTS 4

/* How long the master may take to drop the snapshot of a save that was given up. */
#define MUSTER_DROP_GIVEN_UP_US (100 * MUSTER_MILLISECOND)

/* The model that is saved: reference-counted, so that a running save keeps the one that it began
 * with. */
typedef struct {
  gatomicrefcount refs;
  MusterSaver *saver;     /* (owned) */
  MusterSession *session; /* (owned) */
  guint64 bytes;          /* of a snapshot; an estimate unless is_exact */
  gboolean is_exact;
} MusterAsyncModel;

MusterAsyncModel *muster_async_model_new (MusterSaver *saver, MusterSession *session);
MusterAsyncModel *muster_async_model_ref (MusterAsyncModel *self);
void muster_async_model_unref (MusterAsyncModel *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterAsyncModel, muster_async_model_unref)

/* Holds one snapshot. Only the owner of the slot (is_taken) uses the snapshot. */
typedef struct {
  MusterSnapshot *snapshot; /* (owned) (nullable) */
  MusterAsyncModel *model;  /* (owned) (nullable) of the snapshot */
  gboolean is_whole;        /* it is that of the save that was staged last */
  gboolean is_taken;        /* guarded by the core's lock */
} MusterAsyncSlot;

/* One save. Immutable once queued. */
typedef struct {
  MusterSaveTicket *ticket; /* (owned) */
  MusterAsyncModel *model;  /* (owned) */
  MusterAsyncSlot *slot;    /* of its snapshot; the core's */
  GPtrArray *tensors;       /* (owned) from the saveables */
  gboolean unlisted;
  char *directory;   /* (owned) (nullable) with due: the durable tier's */
  MusterTierSet due; /* 0: the ticket's path tells where */
} MusterAsyncRequest;

void muster_async_request_free (MusterAsyncRequest *self);

/* What the saver shares with its thread, which may live longer. */
typedef struct {
  gatomicrefcount refs;
  MusterSavePolicy policy;
  guint64 budget_bytes;
  MusterSaveFinished finished; /* (nullable) */
  gpointer finished_data;
  GBytes *finished_owner; /* (owned) (nullable) of finished_data */
  gint64 dispose_wait_us; /* 0: DISPOSE_WAIT_US */
  MusterClock *clock;     /* (owned) */
  MusterSaveMeter *meter; /* (owned) */
  GMutex lock;
  GCond changed;
  /* guarded by lock */
  MusterAsyncModel *model; /* (owned) */
  MusterAsyncSlot slots[MUSTER_MAX_SNAPSHOTS];
  GQueue waiting;              /* (owned) (element-type MusterAsyncRequest) staged, in order */
  MusterAsyncRequest *writing; /* (owned) (nullable) being written by the thread */
  MusterSaveTicket *replaced;  /* (owned) (nullable) that its callers weren't told of yet */
  GThread *thread;             /* (owned) (nullable) */
  GThread *holder;             /* (nullable) the thread that is staging or restoring */
  gboolean is_over;            /* the thread has left its loop */
  gboolean is_shut;
  guint n_scopes;
  gint64 counter;
  GError *failure;      /* (owned) (nullable) not reported yet */
  GError *last_failure; /* (owned) (nullable) */
} MusterAsyncCore;

MusterAsyncCore *muster_async_core_new (MusterAsyncModel *model);
/* muster_async_saver_set_finished () for data that has an owner (transfer full) (nullable). */
void muster_async_saver_share_finished (MusterAsyncSaver *self, MusterSaveFinished finished,
                                        gpointer user_data, GBytes *owner);
/* How long the last unref waits for a running save. Before the first save. */
void muster_async_saver_set_dispose_wait (MusterAsyncSaver *self, gint64 wait_us);

MusterAsyncCore *muster_async_core_ref (MusterAsyncCore *self);
void muster_async_core_unref (MusterAsyncCore *self);

/* With the lock held. TRUE if nothing is staged, written or waiting. */
gboolean muster_async_core_is_idle (MusterAsyncCore *self);
/* With the lock held. FAILED_PRECONDITION for a call from the saver's own thread, or from a
 * callback of the saver on this one. */
gboolean muster_async_core_check_caller (MusterAsyncCore *self, GError **error);

/* With the lock held. A save cancelled by its caller isn't a failure. */
void muster_async_core_note_failure (MusterAsyncCore *self, MusterSaveTicket *ticket,
                                     const GError *failure);

/* Sets the result of a save that succeeded or was skipped for lack of space; takes saved. */
void muster_async_resolve_ticket (MusterSaveTicket *ticket, MusterSaved *saved);

/* The background thread; owns a reference to core. */
gpointer muster_async_core_thread (gpointer core);

G_END_DECLS
