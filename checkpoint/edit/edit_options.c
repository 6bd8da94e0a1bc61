// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "checkpoint/edit/edit.h"

MUSTER_DEFINE_OPTIONS (MusterEditOptions, muster_edit_options)

MusterEditOptions *
muster_edit_options_new (void)
{
  return g_new0 (MusterEditOptions, 1);
}
