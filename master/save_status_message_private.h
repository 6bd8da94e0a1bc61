// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/save_status.h"
#include "rpc/proto/muster.pb-c.h"

G_BEGIN_DECLS

/* The status of saves in announcements between a chief and its master. */

/* Fills a message, which borrows from the status. */
void muster_save_status_fill (Muster__SaveStatus *message, const MusterSaveStatus *status);

/* Reads a message (nullable), whose numbers may be anything. (transfer full) (nullable) */
MusterSaveStatus *muster_save_status_read (const Muster__SaveStatus *message);

G_END_DECLS
