// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * MusterPositionSlots:
 *
 * Who is in which slot of a job whose batches are dealt, and how a task takes over a slot that
 * nobody is in. A master that keeps members knows both ([class@Membership]).
 *
 * All functions are called on the thread that runs the steps. Each is required.
 */
#define MUSTER_TYPE_POSITION_SLOTS (muster_position_slots_get_type ())
G_DECLARE_INTERFACE (MusterPositionSlots, muster_position_slots, MUSTER, POSITION_SLOTS, GObject)

/**
 * MusterPositionSlotsInterface:
 * @parent: the parent interface
 * @version: see [vfunc@PositionSlots.version]
 * @has_task: see [vfunc@PositionSlots.has_task]
 * @claim: see [vfunc@PositionSlots.claim]
 * @release: see [vfunc@PositionSlots.release]
 *
 * What slots implement.
 */
struct _MusterPositionSlotsInterface {
  GTypeInterface parent;
  guint64 (*version) (MusterPositionSlots *self);
  gboolean (*has_task) (MusterPositionSlots *self, guint slot);
  gboolean (*claim) (MusterPositionSlots *self, guint slot, gint64 deadline_us,
                     GCancellable *cancellable, GError **error);
  void (*release) (MusterPositionSlots *self, guint slot);
};

/**
 * MusterPositionSlotsInterface::version:
 * @self: the slots
 *
 * Called at every step.
 *
 * Returns: a number that changes whenever a task comes or goes
 */

/**
 * MusterPositionSlotsInterface::has_task:
 * @self: the slots
 * @slot: a slot
 *
 * Whether a task is in the slot.
 *
 * Returns: `TRUE` also for this task's own slots, and for every slot while a server gathers its
 *   members ([struct@Roster], is_gathering)
 */

/**
 * MusterPositionSlotsInterface::claim:
 * @self: the slots
 * @slot: a slot that nobody is in
 * @deadline_us: when to give up, on the system's clock
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Makes the slot this task's own beside the one that it has, and excludes every other process from
 * it until [vfunc@PositionSlots.release].
 *
 * Returns: `FALSE` if another task has it, with an error, which is only logged
 */

/**
 * MusterPositionSlotsInterface::release:
 * @self: the slots
 * @slot: a slot that was claimed
 *
 * Gives up the slot; at the end of the hook at the latest.
 */

G_END_DECLS
