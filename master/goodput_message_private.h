// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/goodput.h"
#include "rpc/proto/muster.pb-c.h"

G_BEGIN_DECLS

/* A job's goodput in announcements between a chief and its master. */

/* Fills a message, which borrows from goodput. */
void muster_goodput_fill (Muster__Goodput *message, const MusterGoodput *goodput);

/* Reads a message (nullable), whose numbers may be anything. (transfer full) (nullable) */
MusterGoodput *muster_goodput_read (const Muster__Goodput *message);

G_END_DECLS
