// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ready/hub_private.h"
#include "tests/doubles/fake_clock.h"
#include "tests/gtest_shim.h"

G_BEGIN_DECLS

/* A hub over a master that counts what is run, and ears that listen. */

typedef struct {
  GObject parent;
  gboolean can_watch;
  GMutex lock;
  GCond changed;
  char *missing; /* (owned) "" when ready; guarded by lock, as all below */
  gboolean gate_open;
  guint n_runs;
  guint n_entered;
  gboolean is_held; /* runs wait until it is FALSE */
  MusterReadinessChanged callback;
  gpointer callback_data;
} MusterCountingMaster;

typedef struct {
  MusterSession parent;
  MusterCountingMaster *master; /* (not owned) */
  gboolean is_gone;             /* guarded by the master's lock */
} MusterCountingSession;

typedef struct {
  GMutex lock;
  GCond received_more;
  GPtrArray *heard; /* (element-type utf8) guarded by lock */
  MusterReadinessHub *hub;
  MusterSubscriber *subscriber; /* guarded by lock */
  gboolean leaves;              /* at the first word, from the hub's own thread */
  gint n_lingered;              /* atomic: how often it was still there after it had been told */
  guint64 round;                /* the last one; guarded by lock, as is … */
  gint64 phase_age_us;          /* … what was last heard of the chief, as is … */
  gint64 step;                  /* … its step, and … */
  guint64 version;              /* … the version of it all */
} Ear;

typedef struct {
  MusterCountingMaster *master;
  MusterFakeClock *clock;
  MusterReadinessHub *hub;
  MusterChiefRegistry *registry; /* its changes reach the hub */
  MusterMemberRegistry *members; /* (owned) likewise */
  MusterSession *session;        /* (owned) of version 1 */
  Ear *ear;                      /* (owned) lives longer than the hub */
} Fixture;

Ear *ear_new (void);
void ear_free (Ear *ear);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (Ear, ear_free)

/* The hub's function of an ear. */
void listen (const MusterReadiness *readiness, guint64 round, const GError *error, gpointer ear);

/* Waits until n words were heard, and gives all of them: "missing a,b; gate shut; ready", "error
 * 10"; of a model with the chief's phase, "nobody, ready", "starting, gate shut", and with the
 * tasks of a job that waits for some: "nobody, ready, 1 of 2 tasks". */
char *heard (Ear *ear, guint n);

#define EXPECT_RECEIVED(ear, n, words)                                                             \
  do {                                                                                             \
    g_autofree char *all_ = heard (ear, n);                                                        \
    MUSTER_EXPECT_STREQ (all_, words);                                                             \
  } while (0)

Fixture fixture (gboolean can_watch);
/* One whose ear has asked for "ready", and has heard that this is missing: "a,b", "". */
Fixture fixture_that_asked (gboolean can_watch, const char *missing);
void fixture_clear (Fixture *f);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Fixture, fixture_clear)

/* Graphs differ by their version. */
MusterSession *new_session (Fixture *f, char version);
void ask (Fixture *f, Ear *ear, MusterSession *session, const char *gate, const char *ready);
void ask_for (Fixture *f, Ear *ear, MusterSession *session, const MusterWatchFor *what);

void ask_for_digits (Fixture *f, Ear *ear); /* a model's name */
void lose_session (Fixture *f);             /* its runs fail from here on */

/* A chief of "digits"; gives its epoch. */
gint64 claim (Fixture *f);
gint64 claim_over (Fixture *f, MusterGraph *graph);
void announce (Fixture *f, gint64 epoch, MusterChiefPhase phase, gint64 step);

/* A task of "digits", whose job needs so many; gives its number. */
guint64 join (Fixture *f, gint min_tasks);

/* What the master says from here on: "a,b", "" when it is ready; and that something changed. */
void set_missing (Fixture *f, const char *missing);
void signal_change (Fixture *f);

guint n_runs (Fixture *f);
/* Lets runs pass, or holds each where it has computed its answer. */
void hold_runs (Fixture *f, gboolean is_held);
void wait_for_run (Fixture *f, guint n);

G_END_DECLS
