// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "train/monitored_training.h"

/* Options on the heap, for other languages. */

enum {
  HOOKS,
  CHIEF_ONLY_HOOKS,
  SAVER,
  RESTORE,
  SAVER_OBSERVER,
  OBSERVER,
  CONFIG,
  CLUSTER,
  WILL_RUN,
  WILL_FEED,
  PREEMPTION,
  CLOCK
};

static const MusterField owned[] = {
    [HOOKS] =
        MUSTER_OBJECTS_FIELD (MusterMonitoredTrainingOptions, hooks, n_hooks, muster_hook_get_type),
    [CHIEF_ONLY_HOOKS] = MUSTER_OBJECTS_FIELD (MusterMonitoredTrainingOptions, chief_only_hooks,
                                               n_chief_only_hooks, muster_hook_get_type),
    [SAVER] = MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, saver, muster_saver_get_type),
    [RESTORE] = MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, restore,
                                    muster_restore_options_get_type),
    [SAVER_OBSERVER] = MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, saver_observer,
                                           muster_saver_observer_get_type),
    [OBSERVER] = MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, observer,
                                     muster_session_observer_get_type),
    [CONFIG] = MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, config, g_bytes_get_type),
    [CLUSTER] = MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, cluster, g_strv_get_type),
    [WILL_RUN] = MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, will_run, g_strv_get_type),
    [WILL_FEED] = MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, will_feed, g_strv_get_type),
    [PREEMPTION] =
        MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, preemption, muster_preemption_get_type),
    [CLOCK] = MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, clock, muster_clock_get_type),
    MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, scaffold, muster_scaffold_get_type),
    MUSTER_TYPED_FIELD (MusterMonitoredTrainingOptions, master, muster_master_get_type),
    MUSTER_STRING_FIELD (MusterMonitoredTrainingOptions, checkpoint_dir),
    MUSTER_STRING_FIELD (MusterMonitoredTrainingOptions, summary_dir),
    MUSTER_STRING_FIELD (MusterMonitoredTrainingOptions, model),
    MUSTER_STRING_FIELD (MusterMonitoredTrainingOptions, task),
    MUSTER_STRING_FIELD (MusterMonitoredTrainingOptions, chief),
};
MUSTER_DEFINE_OPTIONS (MusterMonitoredTrainingOptions, muster_monitored_training_options, owned)

MusterMonitoredTrainingOptions *
muster_monitored_training_options_new (MusterScaffold *scaffold, MusterMaster *master)
{
  g_return_val_if_fail (scaffold != NULL && master != NULL, NULL);

  const MusterMonitoredTrainingOptions options = {.scaffold = scaffold, .master = master};
  return muster_monitored_training_options_copy (&options);
}

void
muster_monitored_training_options_set_will_run (MusterMonitoredTrainingOptions *self,
                                                const char *const *names, const char *const *feeds)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[WILL_RUN], names);
  muster_fields_set (self, &owned[WILL_FEED], feeds);
}

void
muster_monitored_training_options_add_hook (MusterMonitoredTrainingOptions *self, MusterHook *hook)
{
  g_return_if_fail (self != NULL && hook != NULL);
  muster_fields_append (self, &owned[HOOKS], hook);
}

void
muster_monitored_training_options_add_chief_only_hook (MusterMonitoredTrainingOptions *self,
                                                       MusterHook *hook)
{
  g_return_if_fail (self != NULL && hook != NULL);
  muster_fields_append (self, &owned[CHIEF_ONLY_HOOKS], hook);
}

void
muster_monitored_training_options_set_saver (MusterMonitoredTrainingOptions *self,
                                             MusterSaver *saver)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[SAVER], saver);
}

void
muster_monitored_training_options_set_restore (MusterMonitoredTrainingOptions *self,
                                               const MusterRestoreOptions *restore)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[RESTORE], restore);
}

void
muster_monitored_training_options_set_saver_observer (MusterMonitoredTrainingOptions *self,
                                                      MusterSaverObserver *observer)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[SAVER_OBSERVER], observer);
}

void
muster_monitored_training_options_set_observer (MusterMonitoredTrainingOptions *self,
                                                MusterSessionObserver *observer)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[OBSERVER], observer);
}

void
muster_monitored_training_options_set_config (MusterMonitoredTrainingOptions *self, GBytes *config)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[CONFIG], config);
}

void
muster_monitored_training_options_set_cluster (MusterMonitoredTrainingOptions *self,
                                               const char *const *cluster)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[CLUSTER], cluster);
}

void
muster_monitored_training_options_set_preemption (MusterMonitoredTrainingOptions *self,
                                                  MusterPreemption *preemption)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[PREEMPTION], preemption);
}

void
muster_monitored_training_options_set_clock (MusterMonitoredTrainingOptions *self,
                                             MusterClock *clock)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[CLOCK], clock);
}
