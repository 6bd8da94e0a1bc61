// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/countdown.h"
#include "ready/hub.h"
#include "ready/rate_limiter.h"

G_BEGIN_DECLS

/* What the hub's files share: its questions (hub_question.c), when they are asked again
 * (hub_look.c), and what is made of the answers (hub.c). */

/* Its first block never changes. What is said to be the thread's is the hub's thread's alone; all
 * else is guarded by the hub's lock. */
typedef struct {
  MusterGraph *graph;     /* (owned) (nullable) */
  MusterSession *session; /* (owned) (nullable) only where there is no graph to compare */
  char *gate_op;          /* (owned) (nullable) */
  char *ready_op;         /* (owned) (nullable) */
  char *model;            /* (owned) (nullable) */

  guint index;  /* among the hub's questions */
  GQueue told;  /* (element-type MusterAsker) owned; they have heard the present turn */
  GQueue fresh; /* (element-type MusterAsker) owned; they haven't, in the order to be told */
  GList link;   /* on the agenda */
  gboolean is_on_agenda;
  gboolean is_stale;   /* something changed since the ops were run */
  gboolean is_unheard; /* something changed since the board was looked at */
  gint64 looked_us;    /* when the ops were last run, … */
  gint64 look_us;      /* … and are to be run again, where changes must be polled */
  MusterCountdown countdown;
  MusterHunch hunch;   /* the same, where a change is suspected */
  gboolean is_settled; /* nobody waits for the answer to change */

  MusterTurn ops;        /* the thread's: what the ops said last */
  MusterTurn turn;       /* the thread's: the present answer, once known */
  gboolean is_known;     /* the thread's */
  gint64 told_us;        /* the thread's: the instant from which the turn's ages count */
  MusterGraph *compared; /* the thread's (owned) (nullable): the chief's graph, from which … */
  char *difference;      /* the thread's (owned) (nullable): … this one differs so */
} MusterQuestion;

struct _MusterAsker {
  gatomicrefcount refs;
  MusterQuestion *question; /* (not owned) (nullable) NULL once it has ended; guarded by lock */
  MusterSession *session;   /* (owned) */
  MusterTurnFunc func;
  gpointer user_data;
  GQueue *queue; /* (not owned) which holds it by link; guarded by lock */
  GList link;
  gboolean left; /* guarded by lock */
};

struct _MusterReadinessHub {
  MusterMaster *master; /* (owned) */
  MusterBoard *board;   /* (not owned) (nullable) */
  MusterClock *clock;   /* (owned) */
  gulong changed_id;    /* 0: the master can't tell of changes */
  GThread *thread;
  GCancellable *stop; /* (owned) ends the question that is being run */
  guint64 round;      /* the thread's */

  GMutex lock;
  GCond wake;           /* there is something to do */
  GCond told;           /* a call of an asker's function has returned */
  GCancellable *nap;    /* (owned) (nullable) ends the pause between two looks; guarded by lock */
  gboolean stopping;    /* guarded by lock */
  GPtrArray *questions; /* (element-type MusterQuestion) guarded by lock */
  GHashTable
      *by_what; /* (element-type MusterQuestion) owned: the same, as a set; guarded by lock */
  GQueue
      agenda;   /* (element-type MusterQuestion) those with something to be done; guarded by lock */
  GQueue ended; /* (element-type MusterAsker) owned: told of their end, not left; guarded by lock */
  MusterAsker *speaking; /* (not owned) (nullable) whose function runs now; guarded by lock */
};

/* --- questions --- */

/* For a table of them. Two are one question where the graphs are the same bytes; without a graph,
 * where the session is the same. */
guint muster_question_hash (gconstpointer question);
gboolean muster_question_equal (gconstpointer a, gconstpointer b);
void muster_question_free (gpointer question);

gboolean muster_question_has_askers (const MusterQuestion *self);

/* All below with the lock held. */

/* A question that nobody has asked yet: what is copied, of which the first block is looked at. */
MusterQuestion *muster_hub_add_question (MusterReadinessHub *self, const MusterQuestion *what);
void muster_hub_forget_question (MusterReadinessHub *self, MusterQuestion *question);

void muster_hub_put_on_agenda (MusterReadinessHub *self, MusterQuestion *question);
/* There is something to do for the hub's thread. */
void muster_hub_wake_up (MusterReadinessHub *self);

/* --- looks --- */

/* Between two looks at a master that can't tell of changes: one poller for all askers may look more
 * often than each of them would. */
#define MUSTER_HUB_POLL_CEILING MUSTER_SECOND

/* When to look again at a master that can't tell of changes: after a look, or when it begins or
 * ends to matter little. */
void muster_hub_plan_look (MusterReadinessHub *self, MusterQuestion *question,
                           gboolean has_just_run);

/* The thread waits until there may be something to do, the lock let go meanwhile. */
void muster_hub_rest (MusterReadinessHub *self);

/* TRUE for an answer so old that nobody who comes in should hear it. */
gboolean muster_hub_is_old (MusterReadinessHub *self, const MusterQuestion *question,
                            gint64 now_us);

G_END_DECLS
