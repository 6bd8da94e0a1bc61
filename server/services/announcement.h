// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "master/announcement.h"
#include "rpc/proto/muster.pb-c.h"

G_BEGIN_DECLS

/* A message with the messages that it points to; don't copy it. */
typedef struct {
  Muster__Announcement message;
  Muster__SaveStatus saves;
  Muster__Goodput goodput;
} MusterAnnouncementMessage;

/* Fills a message from an announcement, whose texts and numbers it borrows. */
void muster_server_fill_announcement (MusterAnnouncementMessage *self,
                                      const MusterAnnouncement *chief);

/* Reads what a chief announces: the rest is the server's to say. It borrows the message's texts,
 * and owns its saves and goodput, which the caller frees. */
MusterAnnouncement muster_server_read_announcement (const Muster__Announcement *message);

G_END_DECLS
