// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/async/async_saver.h"
#include "tests/doubles/fake_master.h"
#include "tests/doubles/sharded_model.h"

G_BEGIN_DECLS

/* A process that saves and restores the sharded model; it begins with what its store holds. */
typedef struct {
  const MusterShardedModel *model; /* (not owned) */
  MusterStorage *storage;          /* (not owned) */
  MusterMaster *master;
  MusterSession *session;
  MusterSaver *saver;
  MusterAsyncSaver *async; /* (nullable) then save () saves in the background */
  /* of a chief: */
  MusterFakeClock *clock;
  MusterFakeMaster *judge; /* who is chief */
  MusterSession *judged;
  MusterLease *lease;
} ModelLife;

/* masters (nullable): the master's store; NULL: that of the options. */
ModelLife model_life_new (const MusterShardedModel *model, const MusterSaverOptions *options,
                          MusterStorage *masters);
/* Makes it the chief, in the place of any other. */
void model_life_claim (ModelLife *self);
void model_life_save_in_background (ModelLife *self);
void model_life_clear (ModelLife *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (ModelLife, model_life_clear)

/* Gives every byte this value and saves it. While a save in the background writes, training makes
 * another one of it. */
gboolean model_life_save (ModelLife *self, guint8 value, const char *directory, gint64 step,
                          GError **error);
/* The value of the latest checkpoint; 0 where there is none, -1 with an error. */
int model_life_restore (ModelLife *self, const char *directory, GError **error);

/* What is wrong with a checkpoint, and with the first bad one that a directory lists (transfer
 * full) (nullable). */
char *model_life_fault (MusterStorage *storage, const char *prefix);
char *model_life_fault_of_listed (MusterStorage *storage, const char *directory);

G_END_DECLS
