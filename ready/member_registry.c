// SPDX-License-Identifier: Apache-2.0
/* The members of a server's models: joining, coming back after a restart of the server, and
 * rosters. Leases are in member_lease.c. */
#include "ready/member_registry_state_private.h"

#include <string.h>

#define MAX_MODELS  10000
#define MAX_MEMBERS 100000

MusterMemberRegistry *
muster_member_registry_new (MusterClock *clock, gint64 lease_us, MusterMembersChanged changed,
                            gpointer user_data)
{
  MusterMemberRegistry *self = g_new0 (MusterMemberRegistry, 1);
  self->clock = g_object_ref (clock != NULL ? clock : muster_system_clock ());
  self->lease_us = lease_us;
  self->changed = changed;
  self->user_data = user_data;
  g_mutex_init (&self->lock);
  self->models = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, muster_member_model_free);
  self->members =
      g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, muster_member_entry_free);
  self->looks_us = MUSTER_WAIT_FOREVER;
  /* The upper half is random, so that a number from before a restart of the server isn't given to
   * another member. */
  self->run = (guint64)(muster_clock_random (self->clock) * G_MAXINT32) << 32;
  return self;
}

void
muster_member_registry_free (MusterMemberRegistry *self)
{
  if (self == NULL)
    return;
  g_hash_table_unref (self->models);
  g_hash_table_unref (self->members);
  g_mutex_clear (&self->lock);
  g_object_unref (self->clock);
  g_free (self);
}

gint64
muster_member_registry_lease_us (MusterMemberRegistry *self)
{
  return self->lease_us;
}

void
muster_member_registry_notify (MusterMemberRegistry *self, const char *model, gboolean is_takeover)
{
  if (self->changed != NULL)
    self->changed (model, is_takeover, self->user_data);
}

/* --- joining; static functions need the lock --- */

/* Makes room for another model: removes any one without members. FALSE if all have some. */
static gboolean
has_room (MusterMemberRegistry *self)
{
  GHashTableIter iter;
  gpointer value;
  if (g_hash_table_size (self->models) < MAX_MODELS)
    return TRUE;
  g_hash_table_iter_init (&iter, self->models);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (((MusterMemberModel *)value)->n_members == 0) {
      g_hash_table_iter_remove (&iter);
      return TRUE;
    }
  return FALSE;
}

static MusterMemberModel *
find_or_add (MusterMemberRegistry *self, const char *name, GError **error)
{
  MusterMemberModel *model = g_hash_table_lookup (self->models, name);
  if (model != NULL)
    return model;
  if (!has_room (self)) {
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "can't keep the members of '%s': models are limited to %d", name, MAX_MODELS);
    return NULL;
  }
  model = muster_member_model_new (name);
  g_hash_table_insert (self->models, model->name, model);
  return model;
}

/* The member that comes back, or NULL. */
static MusterMemberEntry *
find_returning (MusterMemberRegistry *self, const MusterMemberRequest *request)
{
  MusterMemberEntry *member = g_hash_table_lookup (self->members, &request->id);
  if (member == NULL || !g_str_equal (member->model->name, request->model) ||
      request->slot != (gint)member->member.slot)
    return NULL;
  return member;
}

/* All numbers of a registry have the same upper half. */
static gboolean
is_of_another (const MusterMemberRegistry *self, guint64 id)
{
  return id != 0 && id >> 32 != self->run >> 32;
}

static void
gather (MusterMemberRegistry *self, MusterMemberModel *model, gint64 now_us)
{
  if (model->has_gathered)
    return;
  model->has_gathered = TRUE;
  model->gathers_us = muster_deadline_after (now_us, MUSTER_GATHER_US);
  self->looks_us = MIN (self->looks_us, model->gathers_us);
}

/* The lower half is drawn, too: a number is all that a member proves itself by, and its neighbours'
 * numbers must not follow from its own. */
static guint64
new_id (MusterMemberRegistry *self)
{
  guint64 id = (self->run & ~(guint64)G_MAXUINT32) |
               (guint64)(muster_clock_random (self->clock) * G_MAXUINT32);
  do
    id = (id & ~(guint64)G_MAXUINT32) | (guint32)(id + 1);
  while ((guint32)id == 0 || g_hash_table_contains (self->members, &id));
  return id;
}

static MusterMemberEntry *
add (MusterMemberRegistry *self, MusterMemberModel *model, const MusterMemberRequest *request,
     guint slot, gint64 now_us)
{
  MusterMemberEntry *member = muster_member_model_add (model, request, slot, new_id (self), now_us);
  g_hash_table_insert (self->members, &member->member.id, member);
  if (!request->is_takeover)
    self->n_joined++;
  return member;
}

guint64
muster_member_registry_join (MusterMemberRegistry *self, const MusterMemberRequest *request,
                             guint *slot, GError **error)
{
  if (!muster_member_request_check (request, error))
    return 0;
  gint64 now_us = muster_clock_now_us (self->clock);
  MusterMember joined = {0};
  guint64 id = 0;
  g_mutex_lock (&self->lock);
  MusterMemberEntry *member = find_returning (self, request);
  if (member == NULL && g_hash_table_size (self->members) >= MAX_MEMBERS) {
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "can't add a member to '%s': members are limited to %d", request->model,
                 MAX_MEMBERS);
  } else if (member == NULL) {
    MusterMemberModel *model = find_or_add (self, request->model, error);
    if (model != NULL && muster_member_model_choose_slot (model, request, slot, error)) {
      member = add (self, model, request, *slot, now_us);
      if (is_of_another (self, request->id))
        gather (self, model, now_us);
      muster_member_entry_describe (member, now_us, &joined);
    }
  }
  if (member != NULL) {
    muster_member_registry_renew (self, member, request->n_batches, now_us);
    id = member->member.id;
    *slot = member->member.slot;
  }
  g_mutex_unlock (&self->lock);
  if (joined.id != 0) {
    muster_member_log_joined (request->model, &joined);
    muster_member_registry_notify (self, request->model, joined.is_takeover);
  }
  muster_member_clear (&joined);
  return id;
}

/* --- reading --- */

void
muster_member_registry_roster (MusterMemberRegistry *self, const char *model, GArray *slots,
                               GArray *ids, MusterMemberCounts *counts)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const MusterMemberModel *found = g_hash_table_lookup (self->models, model);
  for (guint slot = 0; found != NULL && slot < found->slots->len; slot++) {
    const MusterMemberEntry *member = muster_member_model_at (found, slot);
    if (member == NULL)
      continue;
    g_array_append_val (slots, member->member.slot);
    g_array_append_val (ids, member->member.id);
  }
  *counts = found != NULL ? muster_member_model_count (found) : (MusterMemberCounts){0};
}

void
muster_member_registry_count (MusterMemberRegistry *self, const char *model,
                              MusterMemberCounts *counts)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const MusterMemberModel *found = g_hash_table_lookup (self->models, model);
  *counts = found != NULL ? muster_member_model_count (found) : (MusterMemberCounts){0};
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  const MusterMembers *const *one = a;
  const MusterMembers *const *other = b;
  return strcmp ((*one)->model, (*other)->model);
}

GPtrArray *
muster_member_registry_list (MusterMemberRegistry *self, guint most)
{
  GPtrArray *all = g_ptr_array_new_with_free_func ((GDestroyNotify)muster_members_free);
  gint64 now_us = muster_clock_now_us (self->clock);
  GHashTableIter iter;
  gpointer model;
  g_mutex_lock (&self->lock);
  g_hash_table_iter_init (&iter, self->models);
  while (g_hash_table_iter_next (&iter, NULL, &model))
    if (muster_member_model_is_past (model, now_us))
      g_hash_table_iter_remove (&iter);
    else
      g_ptr_array_add (all, muster_member_model_describe (model, most, now_us));
  g_mutex_unlock (&self->lock);
  g_ptr_array_sort (all, compare_names);
  return all;
}

guint64
muster_member_registry_n_joined (MusterMemberRegistry *self)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->n_joined;
}

guint64
muster_member_registry_n_left (MusterMemberRegistry *self, MusterMemberEnd end)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  return self->n_left[end];
}
