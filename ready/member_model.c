// SPDX-License-Identifier: Apache-2.0
/* The members of one model: slots, who gets which, and what is remembered of those that left. */
#include "ready/member_model_private.h"

#include "master/membership.h"
#include "ready/chief_registry_private.h"

/* A model keeps so many of the members that left. */
#define MAX_LEFT 10
/* A rate is computed over at least this time, and at most twice as long. */
#define RATE_US (10 * MUSTER_SECOND)
/* A model without members is forgotten so long after the last one left. */
#define PAST_AFTER_US (3600 * MUSTER_SECOND)

MusterMemberModel *
muster_member_model_new (const char *name)
{
  MusterMemberModel *self = g_new0 (MusterMemberModel, 1);
  self->name = g_strdup (name);
  self->slots = g_ptr_array_new ();
  return self;
}

void
muster_member_model_free (gpointer model)
{
  MusterMemberModel *self = model;
  g_free (self->name);
  g_ptr_array_unref (self->slots);
  g_queue_clear_full (&self->left, muster_member_entry_free);
  g_free (self);
}

void
muster_member_entry_free (gpointer entry)
{
  MusterMemberEntry *self = entry;
  muster_member_clear (&self->member);
  g_free (self);
}

/* --- requests --- */

gboolean
muster_member_request_check (const MusterMemberRequest *request, GError **error)
{
  if (!muster_chief_registry_check_name ("model's name", request->model, error) ||
      (*request->task != '\0' &&
       !muster_chief_registry_check_name ("member's task", request->task, error)) ||
      (*request->who != '\0' &&
       !muster_chief_registry_check_name ("member's process", request->who, error)))
    return FALSE;
  if (request->n_slots < 1 || request->n_slots > MUSTER_MAX_SLOTS)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid number of slots %d of '%s' (use 1 to %d)", request->n_slots,
                        request->model, MUSTER_MAX_SLOTS);
  if (request->slot < -1 || request->slot >= request->n_slots)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid slot %d of '%s' (use 0 to %d, or -1 for any)", request->slot,
                        request->model, request->n_slots - 1);
  if (request->min_tasks < 0 || request->min_tasks > request->n_slots)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid number of tasks %d that '%s' needs (use 0 to %d, its slots)",
                        request->min_tasks, request->model, request->n_slots);
  if (request->n_batches >= 0)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid number of batches %" G_GINT64_FORMAT " (use 0 or more)",
                      request->n_batches);
}

/* --- slots --- */

MusterMemberEntry *
muster_member_model_at (const MusterMemberModel *self, guint slot)
{
  return slot < self->slots->len ? self->slots->pdata[slot] : NULL;
}

MusterMemberCounts
muster_member_model_count (const MusterMemberModel *self)
{
  MusterMemberCounts counts = {
      .n_slots = self->n_slots, .n_tasks = self->n_tasks, .is_gathering = self->gathers_us != 0};
  counts.min_tasks = counts.is_gathering ? 0 : self->min_tasks;
  return counts;
}

static gboolean
refuse_taken (const MusterMemberEntry *holder, GError **error)
{
  const MusterMember *member = &holder->member;
  return muster_fail (
      error, MUSTER_ERROR_FAILED_PRECONDITION, "slot %u of '%s' has a living member, %s%s%s%s",
      member->slot, holder->model->name, *member->task != '\0' ? member->task : "a task",
      *member->who != '\0' ? " (" : "", member->who, *member->who != '\0' ? ")" : "");
}

gboolean
muster_member_model_choose_slot (MusterMemberModel *self, const MusterMemberRequest *request,
                                 guint *slot, GError **error)
{
  if (self->n_members > 0 && self->n_slots != (guint)request->n_slots)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "'%s' has %u slots, not %d: all of its tasks must use the same number",
                        self->name, self->n_slots, request->n_slots);
  self->n_slots = (guint)request->n_slots;
  if (request->slot < 0 && self->n_members >= self->n_slots)
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "all %u slots of '%s' have a member: wait until one leaves, or start the "
                        "job with more slots",
                        self->n_slots, self->name);
  while (muster_member_model_at (self, self->lowest) != NULL)
    self->lowest++;
  *slot = request->slot < 0 ? self->lowest : (guint)request->slot;
  const MusterMemberEntry *holder = muster_member_model_at (self, *slot);
  return holder == NULL || refuse_taken (holder, error);
}

MusterMemberEntry *
muster_member_model_add (MusterMemberModel *self, const MusterMemberRequest *request, guint slot,
                         guint64 id, gint64 now_us)
{
  MusterMemberEntry *entry = g_new0 (MusterMemberEntry, 1);
  entry->model = self;
  entry->min_tasks = (guint)request->min_tasks;
  entry->member = (MusterMember){
      .id = id,
      .slot = slot,
      .task = g_strdup (request->task),
      .who = g_strdup (request->who),
      .n_batches = request->n_batches,
      .is_takeover = request->is_takeover,
  };
  entry->joined_us = entry->early_us = entry->late_us = now_us;
  entry->n_early = entry->n_late = request->n_batches;
  if (slot >= self->slots->len)
    g_ptr_array_set_size (self->slots, (gint)slot + 1);
  self->slots->pdata[slot] = entry;
  self->n_members++;
  self->min_tasks = MAX (self->min_tasks, entry->min_tasks);
  if (!request->is_takeover)
    self->n_tasks++;
  return entry;
}

static void
keep_left (MusterMemberModel *self, MusterMemberEntry *entry)
{
  g_queue_push_head (&self->left, entry);
  if (self->left.length > MAX_LEFT)
    muster_member_entry_free (g_queue_pop_tail (&self->left));
}

/* The most that a present member asks for. */
static void
find_min_tasks (MusterMemberModel *self)
{
  self->min_tasks = 0;
  for (guint slot = 0; slot < self->slots->len; slot++)
    if (muster_member_model_at (self, slot) != NULL)
      self->min_tasks = MAX (self->min_tasks, muster_member_model_at (self, slot)->min_tasks);
}

void
muster_member_model_remove (MusterMemberEntry *entry, MusterMemberEnd end, gint64 now_us,
                            MusterMember *out)
{
  MusterMemberModel *self = entry->model;
  const guint slot = entry->member.slot;
  entry->member.end = end;
  entry->left_us = now_us;
  muster_member_entry_describe (entry, now_us, out);
  self->slots->pdata[slot] = NULL;
  self->lowest = MIN (self->lowest, slot);
  self->n_members--;
  if (entry->min_tasks == self->min_tasks && self->min_tasks > 0)
    find_min_tasks (self);
  if (entry->member.is_takeover) {
    muster_member_entry_free (entry);
    return;
  }
  self->n_tasks--;
  keep_left (self, entry);
}

void
muster_member_entry_renew (MusterMemberEntry *self, gint64 n_batches, gint64 now_us)
{
  self->heard_us = now_us;
  self->member.n_batches = MAX (self->member.n_batches, n_batches);
  if (now_us - self->late_us < RATE_US)
    return;
  self->early_us = self->late_us;
  self->n_early = self->n_late;
  self->late_us = now_us;
  self->n_late = self->member.n_batches;
}

/* --- describing --- */

void
muster_member_entry_describe (const MusterMemberEntry *self, gint64 now_us, MusterMember *out)
{
  const gint64 until_us = self->member.end == MUSTER_MEMBER_STAYS ? now_us : self->left_us;
  const gint64 over_us = until_us - self->early_us;
  *out = self->member;
  out->task = g_strdup (self->member.task);
  out->who = g_strdup (self->member.who);
  out->age_us = until_us - self->joined_us;
  out->silent_us = until_us - self->heard_us;
  out->left_age_us = now_us - until_us;
  if (over_us > 0)
    out->batches_per_second =
        (double)(out->n_batches - self->n_early) * MUSTER_SECOND / (double)over_us;
}

static void
add_copy (GPtrArray *to, const MusterMemberEntry *entry, gint64 now_us)
{
  MusterMember *copy = g_new (MusterMember, 1);
  muster_member_entry_describe (entry, now_us, copy);
  g_ptr_array_add (to, copy);
}

MusterMembers *
muster_member_model_describe (const MusterMemberModel *self, guint most, gint64 now_us)
{
  MusterMembers *all = g_new (MusterMembers, 1);
  const MusterMemberCounts counts = muster_member_model_count (self);
  *all = (MusterMembers){
      .model = g_strdup (self->name),
      .n_slots = self->n_slots,
      .n_members = counts.n_tasks,
      .min_tasks = counts.min_tasks,
      .members = g_ptr_array_new_with_free_func (muster_member_free),
      .left = g_ptr_array_new_with_free_func (muster_member_free),
  };
  for (guint slot = 0; slot < self->slots->len && all->members->len < most; slot++)
    if (muster_member_model_at (self, slot) != NULL &&
        !muster_member_model_at (self, slot)->member.is_takeover)
      add_copy (all->members, muster_member_model_at (self, slot), now_us);
  for (GList *at = self->left.head; at != NULL; at = at->next)
    add_copy (all->left, at->data, now_us);
  return all;
}

gboolean
muster_member_model_is_past (const MusterMemberModel *self, gint64 now_us)
{
  const MusterMemberEntry *last = g_queue_peek_head ((GQueue *)&self->left);
  return self->n_members == 0 && (last == NULL || now_us - last->left_us >= PAST_AFTER_US);
}
