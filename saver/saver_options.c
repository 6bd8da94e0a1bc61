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
