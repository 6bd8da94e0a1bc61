// SPDX-License-Identifier: Apache-2.0
#include "train/training.h"
#include "base/fields_private.h"

/* Trainings and their results on the heap, for other languages. */

enum { BATCHES, FEEDS, SAVER, RESTORE, PREEMPTION, CLUSTER, CONFIG, OBSERVER, CLOCK };

static const MusterField owned[] = {
    [BATCHES] = MUSTER_TYPED_FIELD (MusterTraining, batches, muster_batches_get_type),
    [FEEDS] = MUSTER_STRINGS_FIELD (MusterTraining, feeds, n_feeds),
    [SAVER] = MUSTER_TYPED_FIELD (MusterTraining, saver, muster_saver_options_get_type),
    [RESTORE] = MUSTER_TYPED_FIELD (MusterTraining, restore, muster_restore_options_get_type),
    [PREEMPTION] = MUSTER_TYPED_FIELD (MusterTraining, preemption, muster_preemption_get_type),
    [CLUSTER] = MUSTER_TYPED_FIELD (MusterTraining, cluster, g_strv_get_type),
    [CONFIG] = MUSTER_TYPED_FIELD (MusterTraining, config, g_bytes_get_type),
    [OBSERVER] = MUSTER_TYPED_FIELD (MusterTraining, observer, muster_training_observer_get_type),
    [CLOCK] = MUSTER_TYPED_FIELD (MusterTraining, clock, muster_clock_get_type),
    MUSTER_TYPED_FIELD (MusterTraining, scaffold, muster_scaffold_get_type),
    MUSTER_TYPED_FIELD (MusterTraining, master, muster_master_get_type),
    MUSTER_STRING_FIELD (MusterTraining, model),
    MUSTER_STRING_FIELD (MusterTraining, task),
    MUSTER_STRING_FIELD (MusterTraining, loss),
    MUSTER_STRING_FIELD (MusterTraining, checkpoint_dir),
    MUSTER_STRING_FIELD (MusterTraining, log_dir),
    MUSTER_STRING_FIELD (MusterTraining, chief),
};
MUSTER_DEFINE_OPTIONS (MusterTraining, muster_training, owned)

MusterTraining *
muster_training_new (MusterScaffold *scaffold, MusterMaster *master)
{
  g_return_val_if_fail (scaffold != NULL && master != NULL, NULL);

  const MusterTraining training = {.scaffold = scaffold, .master = master};
  return muster_training_copy (&training);
}

void
muster_training_set_batches (MusterTraining *self, MusterBatches *batches, const char *const *feeds)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[BATCHES], batches);
  muster_fields_set (self, &owned[FEEDS], feeds);
}

void
muster_training_set_saver (MusterTraining *self, const MusterSaverOptions *saver)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[SAVER], saver);
}

void
muster_training_set_restore (MusterTraining *self, const MusterRestoreOptions *restore)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[RESTORE], restore);
}

void
muster_training_set_preemption (MusterTraining *self, MusterPreemption *preemption)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[PREEMPTION], preemption);
}

void
muster_training_set_cluster (MusterTraining *self, const char *const *cluster)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[CLUSTER], cluster);
}

void
muster_training_set_config (MusterTraining *self, GBytes *config)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[CONFIG], config);
}

void
muster_training_set_observer (MusterTraining *self, MusterTrainingObserver *observer)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[OBSERVER], observer);
}

void
muster_training_set_clock (MusterTraining *self, MusterClock *clock)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[CLOCK], clock);
}

/* --- the result --- */

static const MusterField trained_owned[] = {
    MUSTER_TYPED_FIELD (MusterTrained, report.reasons, g_ptr_array_get_type),
    MUSTER_TYPED_FIELD (MusterTrained, report.timeline, g_array_get_type),
    MUSTER_TYPED_FIELD (MusterTrained, report.phases, g_array_get_type),
    MUSTER_TYPED_FIELD (MusterTrained, report.goodput, muster_goodput_get_type),
    MUSTER_STRING_FIELD (MusterTrained, report.restored_from),
    MUSTER_STRING_FIELD (MusterTrained, report.passed_over),
    MUSTER_STRING_FIELD (MusterTrained, report.restore_warning),
    MUSTER_STRING_FIELD (MusterTrained, report.reason),
};
MUSTER_DEFINE_OPTIONS (MusterTrained, muster_trained, trained_owned)

void
muster_trained_clear (MusterTrained *self)
{
  g_return_if_fail (self != NULL);
  muster_session_report_clear (&self->report);
}

MusterTrained *
muster_trained_new (void)
{
  return g_new0 (MusterTrained, 1);
}
