// SPDX-License-Identifier: Apache-2.0
#include "server/services/announcement.h"

#include "master/goodput_message_private.h"
#include "master/save_status_message_private.h"
#include "server/core/service.h"

void
muster_server_fill_announcement (MusterAnnouncementMessage *self, const MusterAnnouncement *chief)
{
  Muster__Announcement *message = &self->message;
  muster__announcement__init (message);
  message->model = muster_server_text (chief->model);
  message->task = muster_server_text (chief->task);
  message->who = muster_server_text (chief->who);
  message->phase = (Muster__Phase)chief->phase;
  message->epoch = chief->epoch;
  message->phase_age_us = chief->phase_age_us;
  message->step = chief->step;
  message->durable_step = chief->durable_step;
  message->durable = muster_server_text (chief->durable);
  message->durable_age_us = chief->durable_age_us;
  message->detail = muster_server_text (chief->detail);
  message->alive = chief->alive;
  message->lost_age_us = chief->lost_age_us;
  message->prepared = chief->prepared;
  message->ready = chief->is_ready;
  message->holder = muster_server_text (chief->holder);
  message->failed = chief->failed;
  message->ended = muster_server_text (chief->ended);
  message->drain = (gint32)chief->drain;
  if (chief->saves != NULL) {
    muster_save_status_fill (&self->saves, chief->saves);
    message->saves = &self->saves;
  }
  if (chief->goodput != NULL) {
    muster_goodput_fill (&self->goodput, chief->goodput);
    message->goodput = &self->goodput;
  }
}

MusterAnnouncement
muster_server_read_announcement (const Muster__Announcement *message)
{
  return (MusterAnnouncement){
      .model = message->model,
      .who = message->who,
      .phase = (MusterChiefPhase)message->phase,
      .epoch = message->epoch,
      .step = message->step,
      .durable_step = message->durable_step,
      .durable = message->durable,
      .durable_age_us = message->durable_age_us,
      .detail = message->detail,
      .holder = message->holder,
      .failed = message->failed,
      .ended = message->ended,
      .drain = message->drain >= MUSTER_DRAIN_NONE && message->drain <= MUSTER_DRAIN_SAVED
                   ? (MusterChiefDrain)message->drain
                   : MUSTER_DRAIN_NONE,
      .saves = muster_save_status_read (message->saves),
      .goodput = muster_goodput_read (message->goodput),
  };
}
