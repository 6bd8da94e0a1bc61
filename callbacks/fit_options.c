// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "callbacks/fit.h"

/* Loops on the heap, for other languages. */

MUSTER_DEFINE_FIELDS (MusterFit, muster_fit)

static MusterFit *
muster_fit_copy (const MusterFit *self)
{
  g_return_val_if_fail (self != NULL, NULL);

  MusterFit *copy = muster_fields_copy (&muster_fit_fields, self);
  copy->callbacks = g_memdup2 (self->callbacks, self->n_callbacks * sizeof *self->callbacks);
  return copy;
}

static void
muster_fit_free (MusterFit *self)
{
  if (self == NULL)
    return;
  g_free ((MusterFitCallback *)self->callbacks);
  muster_fields_free (&muster_fit_fields, self);
}

MusterFit *
muster_fit_new (gint64 n_epochs, gint64 n_batches)
{
  const MusterFit fit = {.n_epochs = n_epochs, .n_batches = n_batches};
  return muster_fit_copy (&fit);
}

void
muster_fit_set_train (MusterFit *self, MusterFitTrain train, gpointer user_data,
                      GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL && train != NULL);

  muster_own_more (&self->owner, user_data, destroy);
  self->train = train;
  self->user_data = user_data;
}

void
muster_fit_add_callback (MusterFit *self, const MusterFitCallback *callback, GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL && callback != NULL);

  MusterFitCallback *callbacks = (MusterFitCallback *)self->callbacks;
  muster_own_more (&self->owner, callback->user_data, destroy);
  callbacks = g_renew (MusterFitCallback, callbacks, self->n_callbacks + 1);
  callbacks[self->n_callbacks++] = *callback;
  self->callbacks = callbacks;
}
