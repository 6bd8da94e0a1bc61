// SPDX-License-Identifier: Apache-2.0
#include "saver/saver_options.h"

#include "base/fields_private.h"

/* The structs of options and results, as copies that own what they point to. */

MUSTER_DEFINE_OPTIONS (MusterSaverOptions, muster_saver_options)

void
muster_saver_options_set_paused (MusterSaverOptions *self, MusterSaverPaused paused,
                                 gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->paused = paused;
  self->paused_data = user_data;
  muster_own_data (&self->paused_owner, user_data, destroy);
}

MUSTER_DEFINE_OPTIONS (MusterSaved, muster_saved)

MUSTER_DEFINE_FIELDS (MusterSaveHow, muster_save_how)

static MusterSaveHow *
muster_save_how_copy (const MusterSaveHow *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterSaveHow *copy = muster_fields_copy (&muster_save_how_fields, self);
  g_clear_pointer ((GPtrArray **)&copy->tensors, g_ptr_array_unref);
  for (guint i = 0; self->tensors != NULL && i < self->tensors->len; i++) {
    const MusterNamedTensor *named = self->tensors->pdata[i];
    muster_save_how_add_tensor (copy, named->name, named->tensor);
  }
  return copy;
}

static void
muster_save_how_free (MusterSaveHow *self)
{
  if (self == NULL)
    return;
  muster_fields_free (&muster_save_how_fields, self);
}

static void
free_named (gpointer named)
{
  g_boxed_free (MUSTER_TYPE_NAMED_TENSOR, named);
}

void
muster_save_how_add_tensor (MusterSaveHow *self, const char *name, MusterTensor *tensor)
{
  g_return_if_fail (self != NULL && name != NULL && tensor != NULL);
  if (self->tensors == NULL)
    self->tensors = g_ptr_array_new_with_free_func (free_named);
  muster_named_tensors_add ((GPtrArray *)self->tensors, name, tensor);
}
