// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/announcement.h"
#include "rpc/proto/muster.pb-c.h"

G_BEGIN_DECLS

/* Fills a message from an announcement, whose texts it borrows. */
void muster_server_fill_announcement (Muster__Announcement *message,
                                      const MusterAnnouncement *chief);

G_END_DECLS
