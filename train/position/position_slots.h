// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/**
 * MusterPositionSlots:
 *
 * The slots of a job whose batches are dealt: which ones have a task, and how a task takes over one
 * that has none. A master that keeps members provides both ([class@Membership]).
 *
 * All functions are required. They are called on the thread that runs the steps.
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
 * What an implementation provides.
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
 * Called before each step.
 *
 * Returns: a number that changes whenever a task joins or leaves
 */

/**
 * MusterPositionSlotsInterface::has_task:
 * @self: the slots
 * @slot: a slot
 *
 * Whether the slot has a task.
 *
 * Returns: `TRUE` if it has one. This task counts, also in a slot that it has claimed; and every
 *   slot counts while a server gathers its members ([struct@Roster], is_gathering)
 */

/**
 * MusterPositionSlotsInterface::claim:
 * @self: the slots
 * @slot: a slot without a task
 * @deadline_us: when to give up, an instant of g_get_monotonic_time ()
 * @cancellable: (nullable): cancels the call
 * @error: return location for an error
 *
 * Takes over the slot, in addition to the one that this task has. No other process gets it until
 * [vfunc@PositionSlots.release].
 *
 * Returns: `FALSE` with an error if it wasn't taken over, for example because another task has it.
 *   The error is only logged
 */

/**
 * MusterPositionSlotsInterface::release:
 * @self: the slots
 * @slot: a slot that was claimed
 *
 * Releases the slot. Called at the latest when the hook ends.
 */

G_END_DECLS
