// SPDX-License-Identifier: Apache-2.0
#include "ready/member_private.h"

#include "base/log_bounded_private.h"

const char *
muster_member_end_name (MusterMemberEnd end)
{
  static const char *const names[] = {"stays", "left", "ended", "silent"};
  return names[end];
}

char *
muster_member_why (const MusterMember *member)
{
  if (member->end == MUSTER_MEMBER_LEFT)
    return g_strdup ("left");
  if (member->end == MUSTER_MEMBER_ENDED)
    return g_strdup ("its process ended, or its connection broke");
  if (member->end != MUSTER_MEMBER_SILENT)
    return NULL;
  g_autofree char *silent = muster_format_duration (member->silent_us);
  return g_strdup_printf ("silent for %s", silent);
}

char *
muster_waiting_for_tasks (guint n_tasks, guint min_tasks)
{
  return g_strdup_printf ("waiting for tasks: %u of at least %u", n_tasks, min_tasks);
}

char *
muster_member_counts_why (const MusterMemberCounts *counts)
{
  return counts->n_tasks < counts->min_tasks
             ? muster_waiting_for_tasks (counts->n_tasks, counts->min_tasks)
             : NULL;
}

void
muster_member_clear (MusterMember *self)
{
  g_free (self->task);
  g_free (self->who);
}

void
muster_member_free (gpointer member)
{
  MusterMember *self = member;
  muster_member_clear (self);
  g_free (self);
}

void
muster_members_free (MusterMembers *self)
{
  if (self == NULL)
    return;
  g_free (self->model);
  g_ptr_array_unref (self->members);
  g_ptr_array_unref (self->left);
  g_free (self);
}

/* --- the log --- */

/* The task's own name, or its process. */
static const char *
name_of (const MusterMember *member)
{
  if (*member->task != '\0')
    return member->task;
  return *member->who != '\0' ? member->who : "a task";
}

static void
log_takeover (const char *model, const MusterMember *member)
{
  muster_log_at_most (MUSTER_LOG_EVENTS, G_LOG_LEVEL_INFO, "slot-taken-over", "MUSTER_MODEL", model,
                      "MUSTER_TASK", member->task, "MUSTER_CLIENT", member->who, "MUSTER_SLOT",
                      MUSTER_LOG_INT (member->slot), "MESSAGE",
                      "%s takes over slot %u of '%s' for one step", name_of (member), member->slot,
                      model);
}

void
muster_member_log_joined (const char *model, const MusterMember *member)
{
  if (member->is_takeover) {
    log_takeover (model, member);
    return;
  }
  muster_log_at_most (
      MUSTER_LOG_EVENTS, G_LOG_LEVEL_INFO, "member-joined", "MUSTER_MODEL", model, "MUSTER_TASK",
      member->task, "MUSTER_CLIENT", member->who, "MUSTER_SLOT", MUSTER_LOG_INT (member->slot),
      "MESSAGE", "%s joined the job of '%s' in slot %u", name_of (member), model, member->slot);
}

void
muster_member_log_left (const char *model, const MusterMember *member)
{
  static MusterLogLimit limit = {.most = MUSTER_LOG_EVENTS};
  char left_out[MUSTER_LOG_COUNT_SIZE] = "";
  const gboolean has_left = member->end == MUSTER_MEMBER_LEFT;
  const gboolean is_silent = member->end == MUSTER_MEMBER_SILENT; /* once in a lease at most */
  const GLogLevelFlags level = is_silent ? G_LOG_LEVEL_MESSAGE : G_LOG_LEVEL_INFO;
  if (member->is_takeover || (!is_silent && !muster_log_bounded (level, &limit, left_out)))
    return;
  g_autofree char *why = muster_member_why (member);
  muster_log (level, "member-left", "MUSTER_MODEL", model, "MUSTER_TASK", member->task,
              "MUSTER_CLIENT", member->who, "MUSTER_SLOT", MUSTER_LOG_INT (member->slot),
              "MUSTER_REASON", muster_member_end_name (member->end), "MUSTER_LEFT_OUT", left_out,
              "MESSAGE", "%s %s slot %u of '%s'%s%s", name_of (member),
              has_left ? "left" : "is gone from", member->slot, model, has_left ? "" : ": ",
              has_left ? "" : why);
}
