// SPDX-License-Identifier: Apache-2.0
#include "callbacks/progress_saveable_private.h"

#include "base/error.h"

#define EPOCH "ckpt_saved_epoch"
#define BATCH "ckpt_saved_batch"

static void progress_saveable_iface_init (MusterSaveableInterface *iface);

G_DEFINE_FINAL_TYPE_WITH_CODE (MusterProgressSaveable, muster_progress_saveable, G_TYPE_OBJECT,
                               G_IMPLEMENT_INTERFACE (MUSTER_TYPE_SAVEABLE,
                                                      progress_saveable_iface_init))

static gboolean
progress_saveable_copy (MusterSaveable *saveable, GPtrArray *tensors, GError **error G_GNUC_UNUSED)
{
  MusterProgressSaveable *self = MUSTER_PROGRESS_SAVEABLE (saveable);
  g_autoptr (MusterTensor) epoch = muster_tensor_new_int64 (self->epoch);
  g_autoptr (MusterTensor) batch = muster_tensor_new_int64 (self->batch);
  muster_named_tensors_add (tensors, EPOCH, epoch);
  muster_named_tensors_add (tensors, BATCH, batch);
  return TRUE;
}

static gboolean
read_number (GHashTable *tensors, const char *key, gint64 *value, GError **error)
{
  const MusterTensor *tensor = g_hash_table_lookup (tensors, key);
  if (tensor == NULL) {
    *value = -1;
    return TRUE;
  }
  if (muster_tensor_get_int64 (tensor, value, NULL) && *value >= -1 && *value < G_MAXINT64 / 4)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_DATA_LOSS,
                      "'%s' in the checkpoint isn't a number of epochs or batches", key);
}

static gboolean
progress_saveable_restore (MusterSaveable *saveable, GHashTable *tensors, GError **error)
{
  MusterProgressSaveable *self = MUSTER_PROGRESS_SAVEABLE (saveable);
  gint64 epoch, batch;
  if (!read_number (tensors, EPOCH, &epoch, error) || !read_number (tensors, BATCH, &batch, error))
    return FALSE;
  self->epoch = epoch;
  self->batch = batch;
  return TRUE;
}

static void
progress_saveable_iface_init (MusterSaveableInterface *iface)
{
  iface->copy_to_host = progress_saveable_copy;
  iface->restore = progress_saveable_restore;
}

static void
muster_progress_saveable_class_init (MusterProgressSaveableClass *klass G_GNUC_UNUSED)
{
}

static void
muster_progress_saveable_init (MusterProgressSaveable *self)
{
  self->epoch = self->batch = -1;
}

MusterProgressSaveable *
muster_progress_saveable_new (void)
{
  return g_object_new (MUSTER_TYPE_PROGRESS_SAVEABLE, NULL);
}
