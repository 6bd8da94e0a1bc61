// SPDX-License-Identifier: Apache-2.0
#include "server/services/announcement.h"

#include "server/core/service.h"

void
muster_server_fill_announcement (Muster__Announcement *message, const MusterAnnouncement *chief)
{
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
}
