// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"
#include "tests/doubles/fake_clock.h"

G_BEGIN_DECLS

/* MusterFakeMaster is a small working master without a graph: variables are names that have a value
 * or haven't, ops are what the test says of them, and everything costs the fake time that the test
 * gives it. It keeps a diary of what was asked of it ("create", "run init", "close") and counts
 * sessions. An op or tensor is known by its node's name: "ready:0" and "ready" are one op. What
 * nobody scripted fails as on a real master, with INVALID_ARGUMENT. Any thread. */

#define MUSTER_TYPE_FAKE_MASTER (muster_fake_master_get_type ())
G_DECLARE_FINAL_TYPE (MusterFakeMaster, muster_fake_master, MUSTER, FAKE_MASTER, GObject)

MusterFakeMaster *muster_fake_master_new (MusterFakeClock *clock);
/* What it says it was made from; "fake" until set, which is to be done before anybody asks. */
void muster_fake_master_set_target (MusterFakeMaster *self, const char *target);

/* Ops. An op may be scripted several ways: its effects happen in the order in which they were
 * scripted, and it yields what was scripted last. */
void muster_fake_master_op_sets (MusterFakeMaster *self, const char *op,
                                 ...) G_GNUC_NULL_TERMINATED;
/* Yields the names of those variables that have no value. */
void muster_fake_master_op_reports (MusterFakeMaster *self, const char *op,
                                    ...) G_GNUC_NULL_TERMINATED;
/* Yields a tensor; NULL: the op has no output. */
void muster_fake_master_op_yields (MusterFakeMaster *self, const char *op, MusterTensor *value);
/* Calls back with the step (the fake's lock isn't held); *value may be filled. */
typedef gboolean (*MusterFakeOp) (MusterFakeMaster *self, const MusterStep *step,
                                  MusterTensor **value, gpointer user_data, GError **error);
void muster_fake_master_op_calls (MusterFakeMaster *self, const char *op, MusterFakeOp func,
                                  gpointer user_data);

/* What is asked by name: "create", "close", "watch", "claim", "announce" or an op. The calls from
 * the first on (1, 2, …) fail, n_times of them (G_MAXUINT: from then on). */
void muster_fake_master_fail (MusterFakeMaster *self, const char *what, guint first, guint n_times,
                              MusterError code, const char *message);
/* From now on they do no more. */
void muster_fake_master_forgive (MusterFakeMaster *self, const char *what);
/* How long each call takes; one that doesn't end by its deadline fails with DEADLINE_EXCEEDED at
 * it. MUSTER_WAIT_FOREVER: it hangs. */
void muster_fake_master_set_cost (MusterFakeMaster *self, const char *what, gint64 cost_us);
/* What doesn't end by its deadline fails so long before it, as at a master that is given a little
 * less than its client has. */
void muster_fake_master_set_early (MusterFakeMaster *self, gint64 early_us);

/* The world outside: somebody else gives a variable its value; the master dies (every session and
 * value is gone) and another stands in its place. */
void muster_fake_master_set_variable (MusterFakeMaster *self, const char *name);
gboolean muster_fake_master_has_variable (MusterFakeMaster *self, const char *name);
void muster_fake_master_restart (MusterFakeMaster *self);

/* Nobody is there until so long after its clock's start: every call is UNAVAILABLE, "connection
 * refused", and who pauses hears when it is up again. How often that was tried is the calls of
 * "reach". */
void muster_fake_master_down_until (MusterFakeMaster *self, gint64 after_us);

/* Sessions offer watch from now on (without: UNIMPLEMENTED). */
void muster_fake_master_set_watchable (MusterFakeMaster *self);

/* Sessions offer claim from now on, by the rules of claiming (without: UNIMPLEMENTED), for one
 * model whatever its name; and watches that name a model tell of its chief. A lease that is dropped
 * counts as lost at once, and never runs out. The diary says "claim" and "announce restoring". Each
 * of what follows turns it on too. */
void muster_fake_master_set_announcing (MusterFakeMaster *self);
/* Another process's chief, as turns and claims find it; NULL: no chief has ever registered. Ages
 * count on from those given. A chief whose lease was held here has lost it. */
void muster_fake_master_set_chief (MusterFakeMaster *self, const MusterAnnouncement *chief);
/* "worker:9 (elsewhere:1)" comes with a higher epoch: whoever holds a lease has lost it, and the
 * session that claimed it is gone (ABORTED). */
void muster_fake_master_usurp (MusterFakeMaster *self);
void muster_fake_master_set_graph_difference (MusterFakeMaster *self, const char *difference);
/* What is announced now, (transfer full) (nullable). */
MusterAnnouncement *muster_fake_master_chief (MusterFakeMaster *self);

/* How often something was asked; sessions open now, and at most. */
guint muster_fake_master_n_calls (MusterFakeMaster *self, const char *what);
guint muster_fake_master_n_open (MusterFakeMaster *self);
guint muster_fake_master_most_open (MusterFakeMaster *self);

/* "create, run init, run ready, close", (transfer full). */
char *muster_fake_master_diary (MusterFakeMaster *self);
/* The last tensor fed under that name, or NULL; and the options of op's last step, or for "create"
 * the last session's config; borrowed. */
MusterTensor *muster_fake_master_fed (MusterFakeMaster *self, const char *name);
GBytes *muster_fake_master_options_of (MusterFakeMaster *self, const char *op);

/* A fake master with its clock and a session of that graph (nullable). */
typedef struct {
  MusterFakeClock *clock;
  MusterFakeMaster *master;
  MusterSession *session;
} MusterFakeSetup;

MusterFakeSetup muster_fake_setup_new (MusterGraph *graph);
void muster_fake_setup_clear (MusterFakeSetup *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterFakeSetup, muster_fake_setup_clear)

G_END_DECLS
