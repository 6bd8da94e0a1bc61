// SPDX-License-Identifier: Apache-2.0
#include "ready/model_log_private.h"

#include "base/log_bounded_private.h"

#define EPOCH "%" G_GINT64_FORMAT

/* The least severe of the messages below. */
gboolean
muster_model_log_is_on (void)
{
  return muster_log_enabled (G_LOG_LEVEL_INFO);
}

static const char *
text_of (const char *text)
{
  return text != NULL ? text : "";
}

/* "" of an unknown one. (transfer full) */
static char *
step_text (gint64 step)
{
  return step >= 0 ? g_strdup_printf ("%" G_GINT64_FORMAT, step) : g_strdup ("");
}

static void
log_phase (const MusterAnnouncement *before, const MusterAnnouncement *now)
{
  const gboolean is_milestone = (now->prepared && !before->prepared) ||
                                now->phase == MUSTER_CHIEF_TRAINING ||
                                now->phase == MUSTER_CHIEF_OVER;
  const GLogLevelFlags level = is_milestone ? G_LOG_LEVEL_INFO : G_LOG_LEVEL_DEBUG;
  g_autofree char *step = step_text (now->step);
  const char *event = now->phase == MUSTER_CHIEF_OVER       ? "job-over"
                      : now->prepared && !before->prepared  ? "prepared"
                      : now->phase == MUSTER_CHIEF_TRAINING ? "training"
                                                            : "phase";
  muster_log_at_most (MUSTER_LOG_EVENTS, level, event, "MUSTER_MODEL", now->model, "MUSTER_TASK",
                      text_of (now->task), "MUSTER_CLIENT", text_of (now->who), "MUSTER_EPOCH",
                      MUSTER_LOG_INT (now->epoch), "MUSTER_PHASE",
                      muster_chief_phase_name (now->phase), "MUSTER_STEP", step, "MESSAGE",
                      "the %s of '%s' is %s%s%s", now->phase == MUSTER_CHIEF_OVER ? "job" : "chief",
                      now->model, muster_chief_phase_name (now->phase),
                      now->detail != NULL ? ": " : "", text_of (now->detail));
}

static void
log_checkpoint (const MusterAnnouncement *now)
{
  g_autofree char *bytes =
      now->saves != NULL ? g_strdup_printf ("%" G_GUINT64_FORMAT, now->saves->last_bytes) : NULL;
  muster_log_at_most (MUSTER_LOG_EVENTS, G_LOG_LEVEL_INFO, "checkpoint", "MUSTER_MODEL", now->model,
                      "MUSTER_EPOCH", MUSTER_LOG_INT (now->epoch), "MUSTER_STEP",
                      MUSTER_LOG_INT (now->durable_step), "MUSTER_CHECKPOINT",
                      text_of (now->durable), "MUSTER_BYTES", text_of (bytes), "MESSAGE",
                      "'%s' is durable at step %" G_GINT64_FORMAT, now->model, now->durable_step);
}

static void
log_failed_saves (const MusterAnnouncement *now, guint64 n)
{
  muster_log_at_most (
      MUSTER_LOG_EVENTS, G_LOG_LEVEL_MESSAGE, "save-failed", "MUSTER_MODEL", now->model,
      "MUSTER_EPOCH", MUSTER_LOG_INT (now->epoch), "MUSTER_COUNT", MUSTER_LOG_INT (n), "MESSAGE",
      "the chief of '%s' could not save: %" G_GUINT64_FORMAT " saves failed in this run",
      now->model, now->saves->n_failed);
}

void
muster_model_log_change (const MusterAnnouncement *before, const MusterAnnouncement *now)
{
  const guint64 n_failed = before->saves != NULL ? before->saves->n_failed : 0;
  if (now->phase != before->phase)
    log_phase (before, now);
  if (now->durable_step >= 0 &&
      (now->durable_step != before->durable_step || g_strcmp0 (now->durable, before->durable) != 0))
    log_checkpoint (now);
  if (now->saves != NULL && now->saves->n_failed > n_failed)
    log_failed_saves (now, now->saves->n_failed - n_failed);
}

void
muster_model_log_lost (const MusterAnnouncement *chief)
{
  g_autofree char *text = muster_announcement_describe (chief);
  g_autofree char *step = step_text (chief->step);
  muster_log_at_most (
      MUSTER_LOG_EVENTS, G_LOG_LEVEL_MESSAGE, "chief-lost", "MUSTER_MODEL", chief->model,
      "MUSTER_TASK", text_of (chief->task), "MUSTER_CLIENT", text_of (chief->who), "MUSTER_EPOCH",
      MUSTER_LOG_INT (chief->epoch), "MUSTER_STEP", step, "MESSAGE",
      "the chief of '%s' is lost: its lease wasn't renewed: %s", chief->model, text);
}

void
muster_model_log_ready (const char *model, gint64 epoch, gboolean is_ready)
{
  muster_log_at_most (MUSTER_LOG_EVENTS, G_LOG_LEVEL_INFO, is_ready ? "ready" : "not-ready",
                      "MUSTER_MODEL", model, "MUSTER_EPOCH", MUSTER_LOG_INT (epoch), "MESSAGE",
                      is_ready ? "'%s' is ready" : "'%s' isn't ready any more", model);
}
