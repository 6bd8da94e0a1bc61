// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "session/session_manager.h"

G_BEGIN_DECLS

/* What the manager's verbs share: the manager's own ops, and one run of a verb with its clock, its
 * deadline, its phases and its report. A verb is one thread's and lives on its stack. */

struct _MusterSessionManager {
  GObject parent;
  MusterGraph *graph;            /* (owned) (nullable) */
  char *local_init_op;           /* (owned) (nullable) */
  char *ready_op;                /* (owned) (nullable) */
  char *ready_for_local_init_op; /* (owned) (nullable) */
  gint64 recovery_wait_us;
  GBytes *local_init_run_options; /* (owned) (nullable) */
  GBytes *config;                 /* (owned) (nullable) */
  MusterClock *clock;             /* (owned) */
  MusterSessionProgress progress;
  gpointer progress_data;
};

typedef struct {
  const MusterSessionManager *manager; /* (not owned) */
  MusterMaster *master;                /* (not owned) */
  MusterClock *clock;                  /* (not owned) the manager's */
  GCancellable *cancellable;           /* (not owned) (nullable) */
  gint64 timeout_us;                   /* as asked for */
  gint64 deadline_us;
  /* What bounds a call to the master: the deadline, but for a single look some time of its own. */
  gint64 call_deadline_us;
  const char *phase; /* (nullable) the running one */
  gint64 phase_started_us;
  char *why;                  /* (owned) (nullable) the last reason why there is no session yet */
  char *told;                 /* (owned) (nullable) what the listener was told last */
  MusterSessionReport report; /* (owned) */
} MusterVerb;

#define MUSTER_ONE_LOOK_LIMIT_US (30 * MUSTER_SECOND)

/* Starts the clock. timeout_us 0 and below: a single look. */
void muster_verb_start (MusterVerb *self, const MusterSessionManager *manager, MusterMaster *master,
                        gint64 timeout_us, GCancellable *cancellable);
/* Hands the report to *report (nullable). */
void muster_verb_finish (MusterVerb *self, MusterSessionReport *report);

/* Ends the running phase and begins another: a static string, or NULL for none. Time spent in one
 * name adds up. */
void muster_verb_phase (MusterVerb *self, const char *name);
/* Gives the running phase another name, now that it is known what it was. */
void muster_verb_rename_phase (MusterVerb *self, const char *name);
gboolean muster_verb_is_over (const MusterVerb *self);
void muster_verb_set_why (MusterVerb *self, const char *why);
/* Tells the manager's listener, if the message is another one than the last. */
void muster_verb_tell (MusterVerb *self, const char *message, const MusterTurn *turn);

/* Reports failure (transfer full) to the caller: where the deadline ran out, which phase it was,
 * how long each took and why there is no session. Always FALSE. */
gboolean muster_verb_fail (MusterVerb *self, GError *failure, GError **error);

/* Creates a session: the phase "connect" if that fails, "create" if it works. */
MusterSession *muster_verb_create_session (MusterVerb *self, GError **error);

/* restore.c: restores what options name, if there is anything; report.restored_from says what. */
gboolean muster_verb_restore (MusterVerb *self, MusterSession *session,
                              const MusterPrepareOptions *options, GError **error);
/* TRUE if options name a saver and a place. */
gboolean muster_prepare_options_can_restore (const MusterPrepareOptions *options);
gboolean muster_prepare_options_check (const MusterPrepareOptions *options, GError **error);

/* initialise.c */
gboolean muster_verb_init (MusterVerb *self, MusterSession *session,
                           const MusterPrepareOptions *options, GError **error);
/* The gate, and if it is open local init; *why (transfer full) says why the gate isn't, else NULL.
 */
gboolean muster_verb_try_local_init (MusterVerb *self, MusterSession *session, char **why,
                                     GError **error);
gboolean muster_verb_run_local_init (MusterVerb *self, MusterSession *session, GError **error);
gboolean muster_verb_check_ready (MusterVerb *self, MusterSession *session, char **why,
                                  GError **error);

/* wait.c: the waiter's loop. */
MusterSession *muster_verb_wait (MusterVerb *self, GError **error);

G_END_DECLS
