// SPDX-License-Identifier: Apache-2.0
#include "tests/doubles/notebook.h"

static gboolean
notebook_copy (MusterSaveable *saveable, GPtrArray *tensors, GError **error)
{
  MusterNotebook *self = MUSTER_NOTEBOOK (saveable);
  if (self->copying != NULL)
    self->copying (self->copying_data);
  if (self->is_mute)
    return FALSE;
  if (self->fails_to_copy) {
    g_set_error_literal (error, MUSTER_ERROR, (gint)self->fails_to_copy, "the pages stick");
    return FALSE;
  }
  self->n_copied++;
  g_autoptr (MusterTensor) number = muster_tensor_new_int64 (self->number);
  muster_named_tensors_add (tensors, "n", number);
  return TRUE;
}

static gboolean
notebook_restore (MusterSaveable *saveable, GHashTable *tensors, GError **error)
{
  MusterNotebook *self = MUSTER_NOTEBOOK (saveable);
  MusterTensor *number = g_hash_table_lookup (tensors, "n");
  if (number == NULL || muster_tensor_dtype (number) != MUSTER_INT64) {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_DATA_LOSS, "no number in it");
    return FALSE;
  }
  self->n_restored++;
  self->number = *(const gint64 *)muster_tensor_data (number);
  return TRUE;
}

static gboolean
notebook_retrieve (MusterSaveable *saveable, GError **error)
{
  MusterNotebook *self = MUSTER_NOTEBOOK (saveable);
  if (self->fails_to_retrieve) {
    g_set_error_literal (error, MUSTER_ERROR, MUSTER_ERROR_UNAVAILABLE, "nobody home");
    return FALSE;
  }
  self->n_retrieved++;
  return TRUE;
}

static void
saveable_init (MusterSaveableInterface *iface)
{
  iface->copy_to_host = notebook_copy;
  iface->restore = notebook_restore;
}

static void
far_saveable_init (MusterSaveableInterface *iface)
{
  saveable_init (iface);
  iface->retrieve = notebook_retrieve;
}

G_DEFINE_TYPE_WITH_CODE (MusterNotebook, muster_notebook, G_TYPE_OBJECT,
                         G_IMPLEMENT_INTERFACE (MUSTER_TYPE_SAVEABLE, saveable_init))

typedef MusterNotebook MusterFarNotebook;
typedef MusterNotebookClass MusterFarNotebookClass;

G_DEFINE_TYPE_WITH_CODE (MusterFarNotebook, muster_far_notebook, MUSTER_TYPE_NOTEBOOK,
                         G_IMPLEMENT_INTERFACE (MUSTER_TYPE_SAVEABLE, far_saveable_init))

static void
muster_notebook_class_init (MusterNotebookClass *klass G_GNUC_UNUSED)
{
}

static void
muster_notebook_init (MusterNotebook *self G_GNUC_UNUSED)
{
}

static void
muster_far_notebook_class_init (MusterFarNotebookClass *klass G_GNUC_UNUSED)
{
}

static void
muster_far_notebook_init (MusterFarNotebook *self G_GNUC_UNUSED)
{
}

MusterNotebook *
muster_notebook_new (gint64 number)
{
  MusterNotebook *self = g_object_new (MUSTER_TYPE_NOTEBOOK, NULL);
  self->number = number;
  return self;
}

MusterNotebook *
muster_far_notebook_new (gint64 number)
{
  MusterNotebook *self = g_object_new (MUSTER_TYPE_FAR_NOTEBOOK, NULL);
  self->number = number;
  return self;
}
