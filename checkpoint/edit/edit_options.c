// SPDX-License-Identifier: Apache-2.0
#include "base/fields_private.h"
#include "checkpoint/edit/edit.h"

MUSTER_DEFINE_OPTIONS (MusterEditOptions, muster_edit_options)
