// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/master.h"

G_BEGIN_DECLS

/* A master in front of another one, as behind a wire. While it is held, whatever is asked of it or
 * of its sessions (but to close) waits until it is let go, cancelled or out of time, and fails with
 * that; otherwise the other one answers. Any thread. */

#define MUSTER_TYPE_HELD_MASTER (muster_held_master_get_type ())
G_DECLARE_FINAL_TYPE (MusterHeldMaster, muster_held_master, MUSTER, HELD_MASTER, GObject)

MusterHeldMaster *muster_held_master_new (MusterMaster *inner);
void muster_held_master_hold (MusterHeldMaster *self, gboolean is_held);
/* Waits until a call is held; FALSE after 30 s. */
gboolean muster_held_master_wait_for_call (MusterHeldMaster *self);
/* Calls func after each step that the other one has run, on that step's thread. Set it before there
 * are sessions. */
void muster_held_master_after_run (MusterHeldMaster *self, void (*func) (gpointer user_data),
                                   gpointer user_data);

G_END_DECLS
