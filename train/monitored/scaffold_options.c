// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "train/monitored/scaffold.h"

enum { OWNER = 8 };

static const MusterField owned[] = {
    MUSTER_STRING_FIELD (MusterScaffoldOptions, init_op),
    MUSTER_STRING_FIELD (MusterScaffoldOptions, local_init_op),
    MUSTER_STRING_FIELD (MusterScaffoldOptions, ready_op),
    MUSTER_STRING_FIELD (MusterScaffoldOptions, ready_for_local_init_op),
    MUSTER_STRING_FIELD (MusterScaffoldOptions, summary_op),
    MUSTER_STRING_FIELD (MusterScaffoldOptions, train_op),
    MUSTER_STRING_FIELD (MusterScaffoldOptions, global_step),
    MUSTER_TYPED_FIELD (MusterScaffoldOptions, copy_from, muster_scaffold_get_type),
    [OWNER] = MUSTER_TYPED_FIELD (MusterScaffoldOptions, init_func_owner, g_bytes_get_type),
};
MUSTER_DEFINE_OPTIONS (MusterScaffoldOptions, muster_scaffold_options, owned)

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

  muster_fields_own (self, &owned[OWNER], user_data, destroy);
  self->init_func = init_func;
  self->init_func_data = user_data;
}
