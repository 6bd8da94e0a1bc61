// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "train/monitored/scaffold.h"

MUSTER_DEFINE_OPTIONS (MusterScaffoldOptions, muster_scaffold_options)

MusterScaffoldOptions *
muster_scaffold_options_new (MusterScaffold *copy_from)
{
  const MusterScaffoldOptions options = {.copy_from = copy_from};
  return muster_scaffold_options_copy (&options);
}

void
muster_scaffold_options_set_init_func (MusterScaffoldOptions *self,
                                       MusterScaffoldInitFunc init_func, gpointer user_data,
                                       GDestroyNotify destroy)
{
  g_return_if_fail (self != NULL);

  muster_own_data (&self->init_func_owner, user_data, destroy);
  self->init_func = init_func;
  self->init_func_data = user_data;
}
