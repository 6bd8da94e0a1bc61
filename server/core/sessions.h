// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/session.h"
#include "server/core/limits.h"

G_BEGIN_DECLS

/* MusterSessions is a server's table from handles to sessions. A lookup is a reader lock and a
 * hash; the result is referenced, so that a close removes it at once while its steps end.
 *
 * A session may have a lease: if it is neither renewed nor used for that long, it can be taken as
 * expired (server/core/session_reaper.h does that). Any thread. */

typedef struct _MusterSessions MusterSessions;

/* The task whose session it is. */
typedef struct {
  char *task;  /* (owned) "worker:3"; "" if unknown */
  char *who;   /* (owned) "HOST:PID"; "" if unknown */
  char *model; /* (owned) */
  gint64 since_us;
} MusterServedTask;

/* A served session. */
typedef struct {
  gatomicrefcount refs;
  char *handle;           /* (owned) the client's handle */
  MusterSession *session; /* (owned) */
  gint64 timeout_us;      /* for steps without one; 0: none */
  gint64 lease_us;        /* 0: kept until closed */
  gint64 last_us;         /* atomic: last renewal or end of a use */
  gint64 doubted_us;      /* see muster_lease_look (); of muster_sessions_take_expired () */
  gint n_uses;            /* atomic: calls that use it */
  gint is_closed;         /* atomic: closed by its client or a reset, or expired */
  gint was_reset;         /* atomic: closed by a reset; set before is_closed */
  char *why_lost;         /* (owned) (nullable) set before is_closed; see below */
  gint64 since_us;        /* when it was added */
  gint n_lasting;         /* atomic: calls that a close waits for; they are uses, too */

  GMutex extending;     /* one extension at a time */
  gint64 graph_version; /* guarded by extending: number of extensions */
  guint64 graph_bytes;  /* guarded by extending */

  GMutex lock;
  GHashTable *callables;  /* (owned) (element-type gint64 MusterServedCallable) guarded by lock */
  gint64 last_callable;   /* the highest one registered; guarded by lock */
  MusterServedTask *task; /* (owned) (nullable) guarded by lock */
  GCond settled;          /* signals, under lock, that n_lasting is 0 */
} MusterServed;

/* What a server records of a callable; the master has the rest. */
typedef struct {
  gsize n_feeds;
  gsize n_fetches;
  gint64 timeout_us;      /* 0: the session's */
  gboolean is_positioned; /* it feeds a position: it is run to its end */
} MusterServedCallable;

MusterServed *muster_served_ref (MusterServed *self);
void muster_served_unref (MusterServed *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterServed, muster_served_unref)

void muster_served_task_free (MusterServedTask *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterServedTask, muster_served_task_free)
/* ABORTED, with what muster_sessions_take_lost () was told, if the master has lost the session
 * (transfer full) (nullable). */
GError *muster_served_lost_error (MusterServed *self);
/* Sets the session's task (transfer full) (nullable). */
void muster_served_set_task (MusterServed *self, MusterServedTask *task);

void muster_served_add_callable (MusterServed *self, gint64 handle, MusterServedCallable callable);
/* INVALID_ARGUMENT for an unknown or released handle. */
gboolean muster_served_find_callable (MusterServed *self, gint64 handle,
                                      MusterServedCallable *callable, GError **error);
/* FALSE if there was none. */
gboolean muster_served_remove_callable (MusterServed *self, gint64 handle);

/* The clock provides randomness for handles. limits are borrowed: each session that leaves the
 * table is released there. */
MusterSessions *muster_sessions_new (MusterClock *clock, MusterLimits *limits);
void muster_sessions_free (MusterSessions *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterSessions, muster_sessions_free)

/* Adds a session with a new handle; (transfer full). It must have been taken from the limits. */
MusterServed *muster_sessions_add (MusterSessions *self, MusterSession *session,
                                   guint64 graph_bytes, gint64 timeout_us, gint64 lease_us);

/* The same with the master's handle, (transfer full). INTERNAL if another session has it. */
MusterServed *muster_sessions_enter (MusterSessions *self, const char *handle,
                                     MusterSession *session, guint64 graph_bytes, gint64 lease_us,
                                     GError **error);

/* (transfer full). ABORTED, in TensorFlow's words, for an unknown handle: clients then create
 * another session. */
MusterServed *muster_sessions_find (MusterSessions *self, const char *handle, GError **error);

/* Whether a session's callable feeds a position. FALSE if either is unknown. */
gboolean muster_sessions_is_positioned (MusterSessions *self, const char *handle, gint64 callable);

/* Like find, for a call that uses the session: it doesn't expire until muster_served_end_call ().
 */
MusterServed *muster_sessions_begin_call (MusterSessions *self, const char *handle, GError **error);
void muster_served_end_call (MusterServed *self, gint64 now_us);

/* The same for a call that isn't cut short by a close of its session, only by a reset: a positioned
 * step. Whoever has taken the session from the table waits for those calls before closing it;
 * FALSE if some are running at the deadline, or at the cancellation. */
MusterServed *muster_sessions_begin_lasting_call (MusterSessions *self, const char *handle,
                                                  GError **error);
void muster_served_end_lasting_call (MusterServed *self, gint64 now_us);
gboolean muster_served_settle (MusterServed *self, gint64 deadline_us, GCancellable *cancellable);

/* Renews the lease. FALSE for an unknown handle. */
gboolean muster_sessions_renew (MusterSessions *self, const char *handle, gint64 now_us);

/* Like find, and removes it: it counts as closed. */
MusterServed *muster_sessions_take (MusterSessions *self, const char *handle, GError **error);
/* The same for a session ended by a reset elsewhere, without an error; later lookups report the
 * reset. */
MusterServed *muster_sessions_take_reset (MusterSessions *self, const char *handle);
/* Removes those that were added before before_us, which the master has lost (transfer full)
 * (element-type MusterServed), in no order. Later lookups of these say why: "ps:0 was restarted".
 */
GPtrArray *muster_sessions_take_lost (MusterSessions *self, gint64 before_us, const char *why);
/* Removes all, for a reset (transfer full) (element-type MusterServed), in no order. Later lookups
 * of these report the reset, until the second reset after it. */
GPtrArray *muster_sessions_take_all (MusterSessions *self);
/* Undoes this after a failed reset: none of these (element-type MusterServed) was ended by one. */
void muster_sessions_unsay_reset (MusterSessions *self, GPtrArray *taken);
/* Looks at all leases (ready/lease_look_private.h), and removes the sessions whose lease has
 * expired. Returns when to look again; MUSTER_WAIT_FOREVER if none has a lease. One thread at a
 * time. */
gint64 muster_sessions_take_expired (MusterSessions *self, gint64 now_us, GPtrArray *expired);

/* Returns freed memory to the system if there are no sessions and many have been closed; to be
 * called after closing one. */
void muster_sessions_trim (MusterSessions *self);

guint muster_sessions_size (MusterSessions *self);

/* (transfer full) (element-type MusterServedTask) copies of at most max tasks, by name. */
GPtrArray *muster_sessions_tasks (MusterSessions *self, guint max);

G_END_DECLS
