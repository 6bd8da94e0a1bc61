// SPDX-License-Identifier: Apache-2.0
#include "ready/chief_gate_private.h"

#include "base/names_private.h"
#include "master/announcement.h"
#include "ready/member_private.h"

gboolean
muster_chief_decides (const MusterAnnouncement *chief)
{
  return chief != NULL &&
         (muster_chief_phase_is_preparing (chief->phase) || chief->phase == MUSTER_CHIEF_OVER);
}

gboolean
muster_chief_has_session (const MusterAnnouncement *chief)
{
  return chief->phase != MUSTER_CHIEF_TRAINING || chief->detail == NULL || *chief->detail == '\0';
}

static const char *
doing (MusterChiefPhase phase)
{
  switch ((int)phase) {
  case MUSTER_CHIEF_RESTORING:
    return "restoring it";
  case MUSTER_CHIEF_INITIALISING:
    return "initialising it";
  case MUSTER_CHIEF_LOCAL_INIT:
    return "running its own local init";
  default:
    return "starting to prepare it";
  }
}

/* A registry has "" for a name that wasn't given, a client NULL. */
static const char *
name_or (const char *name, const char *otherwise)
{
  return name != NULL && *name != '\0' ? name : otherwise;
}

static char *
why_closed (const MusterAnnouncement *chief)
{
  if (chief->phase == MUSTER_CHIEF_OVER && chief->step < 0)
    return g_strdup ("the job is over");
  if (chief->phase == MUSTER_CHIEF_OVER)
    return g_strdup_printf ("the job is over: it ended at step %" G_GINT64_FORMAT, chief->step);

  const char *task = name_or (chief->task, "of this model");
  const char *who = name_or (chief->who, "somewhere");
  const char *work = doing (chief->phase);
  if (!chief->alive)
    return g_strdup_printf ("the chief %s (%s) was lost while %s; the model isn't ready until a "
                            "chief prepares it again or the master is reset",
                            task, who, work);
  if (chief->detail != NULL)
    return g_strdup_printf ("the chief %s (%s) is %s: %s", task, who, work, chief->detail);
  return g_strdup_printf ("the chief %s (%s) is %s", task, who, work);
}

void
muster_readiness_apply_chief (MusterReadiness *readiness, const MusterReadiness *ops,
                              gboolean keeps_announcements, MusterAnnouncement *chief)
{
  *readiness = (MusterReadiness){
      .keeps_announcements = keeps_announcements,
      .chief = chief,
  };
  if (muster_chief_decides (chief)) {
    readiness->why_gate = why_closed (chief);
    readiness->why_not_ready = g_strdup (readiness->why_gate);
    return;
  }
  readiness->gate_open = ops->gate_open;
  readiness->is_ready = ops->is_ready;
  readiness->why_gate = g_strdup (ops->why_gate);
  readiness->why_not_ready = g_strdup (ops->why_not_ready);
  if (ops->missing != NULL)
    readiness->missing = muster_names_pack (ops->missing, g_strv_length (ops->missing));
}

void
muster_readiness_hold_for_tasks (MusterReadiness *readiness, guint n_tasks, guint min_tasks)
{
  if (n_tasks >= min_tasks)
    return;
  readiness->n_tasks = n_tasks;
  readiness->min_tasks = min_tasks;
  if (!readiness->is_ready)
    return;
  readiness->is_ready = FALSE;
  readiness->why_not_ready = muster_waiting_for_tasks (n_tasks, min_tasks);
}

void
muster_readiness_add_age (MusterReadiness *readiness, gint64 passed_us)
{
  MusterAnnouncement *chief = readiness->chief;
  if (chief == NULL)
    return;
  chief->phase_age_us += passed_us;
  if (chief->durable_step >= 0)
    chief->durable_age_us += passed_us;
  if (!chief->alive)
    chief->lost_age_us += passed_us;
  if (chief->saves != NULL)
    muster_save_status_add_age (chief->saves, passed_us);
  if (chief->goodput != NULL)
    chief->goodput->age_us += passed_us;
}

gboolean
muster_chief_changed (const MusterAnnouncement *before, const MusterAnnouncement *now)
{
  if (before == NULL || now == NULL)
    return before != now;
  return before->phase != now->phase || before->epoch != now->epoch ||
         before->alive != now->alive || before->prepared != now->prepared ||
         (now->phase == MUSTER_CHIEF_OVER && before->step != now->step) ||
         g_strcmp0 (before->task, now->task) != 0 || g_strcmp0 (before->who, now->who) != 0 ||
         g_strcmp0 (before->detail, now->detail) != 0;
}

gboolean
muster_readiness_changed (const MusterReadiness *before, const MusterReadiness *now)
{
  if (before->gate_open != now->gate_open || before->is_ready != now->is_ready ||
      before->keeps_announcements != now->keeps_announcements || before->n_tasks != now->n_tasks ||
      before->min_tasks != now->min_tasks || g_strcmp0 (before->why_gate, now->why_gate) != 0 ||
      g_strcmp0 (before->why_not_ready, now->why_not_ready) != 0 ||
      g_strcmp0 (before->graph_difference, now->graph_difference) != 0 ||
      !before->coordinator_failure != !now->coordinator_failure ||
      muster_chief_changed (before->chief, now->chief))
    return TRUE;
  if (before->missing == NULL || now->missing == NULL)
    return before->missing != now->missing;
  return !g_strv_equal ((const char *const *)before->missing, (const char *const *)now->missing);
}

void
muster_readiness_keep (MusterReadiness *self, MusterReadiness *now, gboolean is_change)
{
  guint64 version = self->version + (is_change ? 1 : 0);
  muster_readiness_clear (self);
  *self = *now;
  self->version = version;
  *now = (MusterReadiness){0};
}
