// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "saver/saver.h"

G_BEGIN_DECLS

/**
 * MusterCut:
 *
 * Makes a consistent save of a model that several tasks or threads train:
 * [struct@SaverConsistentCut] as an object, which other languages can implement.
 *
 * Without one, a save reads one variable after the other, blocking or in the background: steps that
 * run meanwhile, of any session, leave variables of different steps in the checkpoint.
 *
 * All functions are called on the saving thread, while no other save runs.
 */
#define MUSTER_TYPE_CUT (muster_cut_get_type ())
G_DECLARE_INTERFACE (MusterCut, muster_cut, MUSTER, CUT, GObject)

/**
 * MusterCutInterface:
 * @parent: the parent interface
 * @quiesce: (nullable): stops changes of the model, before each attempt to write it
 * @check: (nullable): called after the master has written and the saveables were copied
 * @number: (nullable): the step for the checkpoint's name, instead of the save's step. Called
 * before
 *   @check, so that it matches what was written
 * @release: (nullable): allows changes again
 *
 * What a cut does. Each function is optional.
 */
struct _MusterCutInterface {
  GTypeInterface parent;
  gboolean (*quiesce) (MusterCut *self, MusterSession *session, gint64 deadline_us,
                       GCancellable *cancellable, GError **error);
  gboolean (*check) (MusterCut *self, MusterSession *session, gboolean *is_consistent,
                     gint64 deadline_us, GCancellable *cancellable, GError **error);
  gboolean (*number) (MusterCut *self, MusterSession *session, gint64 *step, gint64 deadline_us,
                      GCancellable *cancellable, GError **error);
  void (*release) (MusterCut *self, MusterSession *session);
};

/**
 * MusterCutInterface::quiesce:
 * @self: a cut
 * @session: the session of the save
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Stops changes of the model, before each attempt to write it.
 *
 * Returns: `TRUE` if nothing changes it
 */

/**
 * MusterCutInterface::check:
 * @self: a cut
 * @session: the session of the save
 * @is_consistent: (out): `FALSE` discards what was written and copied, which is never published,
 *   and another attempt is made, at most five
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * Whether the model stayed the same; called after the master has written and the saveables were
 * copied.
 *
 * Returns: `TRUE` if @is_consistent was set
 */

/**
 * MusterCutInterface::number:
 * @self: a cut
 * @session: the session of the save
 * @step: (out): the step for the checkpoint's name, instead of the save's step
 * @deadline_us: when to give up
 * @cancellable: (nullable): stops it
 * @error: return location for an error
 *
 * The step of what was written; called before check.
 *
 * Returns: `TRUE` if @step was set
 */

/**
 * MusterCutInterface::release:
 * @self: a cut
 * @session: the session of the save
 *
 * Allows changes again: once after the attempts, even on failure, before the files are synced and
 * published; unless the cut is kept ([method@Saver.keep_cut]).
 */

/**
 * muster_saver_set_cut:
 * @self: a saver
 * @cut: (nullable): `NULL`: none
 *
 * Uses a consistent cut for each later save, and for each snapshot of an async saver with this
 * saver. Call it only between saves.
 */
void muster_saver_set_cut (MusterSaver *self, MusterCut *cut);

G_END_DECLS
