// SPDX-License-Identifier: Apache-2.0
#include "master/goodput_message_private.h"
#include "master/remote/remote_private.h"
#include "master/save_status_message_private.h"

#include <unistd.h>

/* Maximum sizes of names and addresses, of a checkpoint's path, and of a message. */
#define MOST_NAME   256
#define MOST_PATH   4096
#define MOST_DETAIL 1024

char *
muster_remote_who (void)
{
  return g_strdup_printf ("%s:%d", g_get_host_name (), (int)getpid ());
}

char *
muster_remote_proof (const char *address, const char *model)
{
  static gsize is_drawn;
  static guint8 secret[32];
  if (g_once_init_enter (&is_drawn)) {
    const int result = getentropy (secret, sizeof secret);
    g_assert (result == 0); /* Linux has had it since 3.17 */
    g_once_init_leave (&is_drawn, 1);
  }
  g_autofree char *place = g_strconcat (address, "\n", model, NULL);
  return g_compute_hmac_for_string (G_CHECKSUM_SHA256, secret, sizeof secret, place, -1);
}

char *
muster_remote_text (const char *text, gsize most)
{
  if (*text == '\0')
    return NULL;
  if (strlen (text) <= most)
    return g_strdup (text);
  const char *end = g_utf8_find_prev_char (text, text + most + 1);
  return g_strndup (text, (gsize)(end - text));
}

MusterAnnouncement *
muster_remote_announcement (const Muster__Announcement *message)
{
  MusterAnnouncement announcement = {
      .model = muster_remote_text (message->model, MOST_NAME),
      .task = muster_remote_text (message->task, MOST_NAME),
      .who = muster_remote_text (message->who, MOST_NAME),
      .phase =
          (int)message->phase >= MUSTER_CHIEF_STARTING && (int)message->phase <= MUSTER_CHIEF_OVER
              ? (MusterChiefPhase)message->phase
              : MUSTER_CHIEF_UNKNOWN,
      .epoch = MAX (message->epoch, 0),
      .phase_age_us = MAX (message->phase_age_us, 0),
      .step = MAX (message->step, -1),
      .durable_step = MAX (message->durable_step, -1),
      .durable = muster_remote_text (message->durable, MOST_PATH),
      .durable_age_us = MAX (message->durable_age_us, 0),
      .detail = muster_remote_text (message->detail, MOST_DETAIL),
      .alive = message->alive,
      .lost_age_us = MAX (message->lost_age_us, 0),
      .prepared = message->prepared,
      .is_ready = message->ready,
      .saves = muster_save_status_read (message->saves),
      .holder = muster_remote_text (message->holder, MOST_PATH),
      .failed = message->failed,
      .ended = muster_remote_text (message->ended, MOST_DETAIL),
      .goodput = muster_goodput_read (message->goodput),
      .drain = message->drain >= MUSTER_DRAIN_NONE && message->drain <= MUSTER_DRAIN_SAVED
                   ? (MusterChiefDrain)message->drain
                   : MUSTER_DRAIN_NONE,
  };
  return g_memdup2 (&announcement, sizeof announcement);
}
