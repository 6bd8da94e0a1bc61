// SPDX-License-Identifier: Apache-2.0
#include "saver/saver_options.h"

#include "base/fields_private.h"

/* The structs of options and results, as copies that own what they point to. */

static const MusterField options_owned[] = {
    MUSTER_TYPED_FIELD (MusterSaverOptions, storage, muster_storage_get_type),
    MUSTER_TYPED_FIELD (MusterSaverOptions, clock, muster_clock_get_type),
    MUSTER_TYPED_FIELD (MusterSaverOptions, paused_owner, g_bytes_get_type),
    MUSTER_STRING_FIELD (MusterSaverOptions, base_name),
    MUSTER_STRING_FIELD (MusterSaverOptions, latest_filename),
    MUSTER_STRING_FIELD (MusterSaverOptions, metric),
};

G_DEFINE_BOXED_TYPE (MusterSaverOptions, muster_saver_options, muster_saver_options_copy,
                     muster_saver_options_free)

MusterSaverOptions *
muster_saver_options_new (void)
{
  return g_new0 (MusterSaverOptions, 1);
}

MusterSaverOptions *
muster_saver_options_copy (const MusterSaverOptions *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterSaverOptions *copy =
      muster_fields_copy (self, sizeof *self, options_owned, G_N_ELEMENTS (options_owned));
  copy->fast = NULL;
  copy->n_fast = 0;
  for (gsize i = 0; i < self->n_fast; i++)
    muster_saver_options_add_fast_tier (copy, &self->fast[i]);
  return copy;
}

void
muster_saver_options_free (MusterSaverOptions *self)
{
  if (self == NULL)
    return;
  for (gsize i = 0; i < self->n_fast; i++)
    g_free ((char *)self->fast[i].directory);
  g_free ((MusterTier *)self->fast);
  muster_fields_free (self, options_owned, G_N_ELEMENTS (options_owned));
}

void
muster_saver_options_set_storage (MusterSaverOptions *self, MusterStorage *storage)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &options_owned[0], storage);
}

void
muster_saver_options_set_clock (MusterSaverOptions *self, MusterClock *clock)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &options_owned[1], clock);
}

void
muster_saver_options_set_paused (MusterSaverOptions *self, MusterSaverPaused paused,
                                 gpointer user_data, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);
  self->paused = paused;
  self->paused_data = user_data;
  muster_fields_own (self, &options_owned[2], user_data, destroy);
}

void
muster_saver_options_add_fast_tier (MusterSaverOptions *self, const MusterTier *tier)
{
  g_return_if_fail (self != NULL && tier != NULL);
  MusterTier *fast = g_renew (MusterTier, (MusterTier *)self->fast, self->n_fast + 1);
  fast[self->n_fast] = *tier;
  fast[self->n_fast].directory = g_strdup (tier->directory);
  self->fast = fast;
  self->n_fast++;
}

static const MusterField saved_owned[] = {
    MUSTER_STRING_FIELD (MusterSaved, prefix),
    MUSTER_STRING_FIELD (MusterSaved, why),
};
MUSTER_DEFINE_OPTIONS (MusterSaved, muster_saved, saved_owned)

MusterSaved *
muster_saved_new (void)
{
  return g_new0 (MusterSaved, 1);
}

static const MusterField how_owned[] = {
    MUSTER_STRING_FIELD (MusterSaveHow, prefix),
    MUSTER_STRING_FIELD (MusterSaveHow, save_tensor),
};

G_DEFINE_BOXED_TYPE (MusterSaveHow, muster_save_how, muster_save_how_copy, muster_save_how_free)

MusterSaveHow *
muster_save_how_new (void)
{
  return g_new0 (MusterSaveHow, 1);
}

MusterSaveHow *
muster_save_how_copy (const MusterSaveHow *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterSaveHow *copy =
      muster_fields_copy (self, sizeof *self, how_owned, G_N_ELEMENTS (how_owned));
  copy->tensors = NULL;
  for (guint i = 0; self->tensors != NULL && i < self->tensors->len; i++) {
    const MusterNamedTensor *named = self->tensors->pdata[i];
    muster_save_how_add_tensor (copy, named->name, named->tensor);
  }
  return copy;
}

void
muster_save_how_free (MusterSaveHow *self)
{
  if (self == NULL)
    return;
  if (self->tensors != NULL)
    g_ptr_array_unref ((GPtrArray *)self->tensors);
  muster_fields_free (self, how_owned, G_N_ELEMENTS (how_owned));
}

void
muster_save_how_add_tensor (MusterSaveHow *self, const char *name, MusterTensor *tensor)
{
  g_return_if_fail (self != NULL && name != NULL && tensor != NULL);
  if (self->tensors == NULL)
    self->tensors =
        g_ptr_array_new_with_free_func ((GDestroyNotify)(void (*) (void))muster_named_tensor_free);
  muster_named_tensors_add ((GPtrArray *)self->tensors, name, tensor);
}
