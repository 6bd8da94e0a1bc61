// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/elastic/elastic_private.h"
#include "train/training.h"

G_BEGIN_DECLS

/* A round of a task (train/task.c): what it trains with, in one role. */
typedef struct {
  MusterTraining training;  /* (not owned) with the round's role */
  MusterElastic *elastic;   /* (not owned) (nullable) NULL: the role is given */
  MusterTrained trained;    /* what the hooks note */
  MusterScaffold *scaffold; /* (owned) with positions */
  MusterSaver *saver;       /* (owned) (nullable) */
  MusterHook *hook;         /* (owned) the training's (train/train_hook_private.h) */
  MusterHook *position;     /* (not owned) (nullable) one of last */
  GPtrArray *first;         /* (owned) (element-type MusterHook) before the hook that saves */
  GPtrArray *last;          /* (owned) (element-type MusterHook) */
  MusterMonitoredSession *session; /* (owned) (nullable) */
} MusterRound;

/* FALSE also for values that are the same in each step: these have no epoch and no position. */
gboolean muster_training_has_rows (const MusterTraining *training);

/* The slots of an elastic job's model. */
guint muster_round_n_slots (const MusterTraining *training);

/* Compares what a training feeds with what its graph needs, before there is a session:
 * INVALID_ARGUMENT names a feed that doesn't fit its placeholder, and the placeholders that the
 * train op or the loss needs and that aren't fed, with the options that feed them; or one that a
 * queue runner's op needs, which nothing feeds (feed_check.c). */
gboolean muster_train_check_feeds (const MusterTraining *training, GError **error);
/* The same of these nodes (each is nullable) of what is called so, without the feeds themselves. */
gboolean muster_train_check_needs (const MusterTraining *training, const char *what,
                                   const char *const *needed, gsize n_needed, GError **error);

/* Creates all of it. `training` and `elastic` are set. cancellable is (nullable). */
gboolean muster_round_open (MusterRound *self, GCancellable *cancellable, GError **error);

/* Closes the session, and frees all of it. */
void muster_round_clear (MusterRound *self);

G_END_DECLS
