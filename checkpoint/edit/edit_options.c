// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "checkpoint/edit/edit.h"

enum { STORAGE, CLOCK };

static const MusterField owned[] = {
    [STORAGE] = MUSTER_TYPED_FIELD (MusterEditOptions, storage, muster_storage_get_type),
    [CLOCK] = MUSTER_TYPED_FIELD (MusterEditOptions, clock, muster_clock_get_type),
};
MUSTER_DEFINE_OPTIONS (MusterEditOptions, muster_edit_options, owned)

MusterEditOptions *
muster_edit_options_new (void)
{
  return g_new0 (MusterEditOptions, 1);
}

void
muster_edit_options_set_storage (MusterEditOptions *self, MusterStorage *storage)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[STORAGE], storage);
}

void
muster_edit_options_set_clock (MusterEditOptions *self, MusterClock *clock)
{
  g_return_if_fail (self != NULL);
  muster_fields_set (self, &owned[CLOCK], clock);
}
