// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "train/hooks/saver_observer.h"

G_BEGIN_DECLS

/* The signals of an object that tells of saves in the background: "saved", "copied" and
 * "save-failed". */

/* For a class_init. */
void muster_save_signals_install (GType type);

/* What a listener has as its functions, with the object as their data. */
void muster_save_signals_saved (const MusterSaved *saved, gpointer object);
void muster_save_signals_copied (const MusterTierCopied *copied, gpointer object);
void muster_save_signals_failed (const MusterFailedSave *failed, gpointer object);

G_END_DECLS
