// SPDX-License-Identifier: Apache-2.0
#include "train/position/position_slots.h"

G_DEFINE_INTERFACE (MusterPositionSlots, muster_position_slots, G_TYPE_OBJECT)

static void
muster_position_slots_default_init (MusterPositionSlotsInterface *iface G_GNUC_UNUSED)
{
}
