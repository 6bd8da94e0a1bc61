// SPDX-License-Identifier: Apache-2.0
#include "ready/member_registry.h"

#include "ready/chief_registry.h"
#include "ready/lease_look.h"

#include <string.h>

#define MAX_MODELS  10000
#define MAX_MEMBERS 100000
/* Of those that left, a model remembers as many. */
#define MAX_LEFT 10
/* A rate is taken over at least as long, and at most twice. */
#define RATE_US (10 * MUSTER_SECOND)
/* A model without members is forgotten after the last has left. */
#define PAST_AFTER_US (3600 * MUSTER_SECOND)

typedef struct Model Model;

typedef struct {
  MusterMember member; /* without ages and rate, which are computed from what follows */
  Model *model;        /* (not owned) */
  guint min_tasks;     /* that it asks for */
  gint64 joined_us;
  gint64 heard_us;
  gint64 doubted_us; /* see muster_lease_look () */
  gint64 left_us;
  /* when it had done as many batches: the rate is taken from the earlier instant */
  gint64 early_us, late_us;
  gint64 n_early, n_late;
} Member;

struct Model {
  char *name; /* (owned) */
  guint n_slots;
  guint n_members; /* with takeovers */
  guint n_tasks;
  guint lowest;      /* no slot below is free */
  gint64 gathers_us; /* until when those may come back that the server had before it restarted; 0:
                        none */
  GPtrArray *slots;  /* (owned) (element-type Member) (nullable elements) by slot */
  GQueue left;       /* (owned) (element-type Member) the latest first */
};

struct _MusterMemberRegistry {
  MusterClock *clock; /* (owned) */
  gint64 lease_us;
  MusterMembersChanged changed; /* (nullable) */
  gpointer user_data;

  GMutex lock;
  /* guarded by lock */
  GHashTable *models;  /* (element-type utf8 Model) owned; the keys are the values' */
  GHashTable *members; /* (element-type guint64 Member) owned; the keys are the values' */
  guint64 next_id;
  gint64 looks_us; /* nobody needs a look before */
  guint64 n_joined;
  guint64 n_left[MUSTER_N_MEMBER_ENDS];
};

static void
entry_free (gpointer data)
{
  Member *self = data;
  muster_member_clear (&self->member);
  g_free (self);
}

static void
model_free (gpointer data)
{
  Model *self = data;
  g_free (self->name);
  g_ptr_array_unref (self->slots);
  g_queue_clear_full (&self->left, entry_free);
  g_free (self);
}

/* --- the registry --- */

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
  self->models = g_hash_table_new_full (g_str_hash, g_str_equal, NULL, model_free);
  self->members = g_hash_table_new_full (g_int64_hash, g_int64_equal, NULL, entry_free);
  self->looks_us = MUSTER_WAIT_FOREVER;
  /* A server that has restarted doesn't take one that comes back for another. */
  self->next_id = (guint64)(muster_clock_random (self->clock) * G_MAXINT32) << 32;
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

static void
notify (MusterMemberRegistry *self, const char *model, gboolean is_takeover)
{
  if (self->changed != NULL)
    self->changed (model, is_takeover, self->user_data);
}

/* --- what comes from outside --- */

static gboolean
check_request (const MusterMemberRequest *request, GError **error)
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

/* --- one model; all with the lock held --- */

static Member *
at_slot (const Model *model, guint slot)
{
  return slot < model->slots->len ? model->slots->pdata[slot] : NULL;
}

static MusterMemberCounts
count_tasks (const Model *model)
{
  MusterMemberCounts counts = {
      .n_slots = model->n_slots, .n_tasks = model->n_tasks, .is_gathering = model->gathers_us != 0};
  for (guint slot = 0; !counts.is_gathering && slot < model->slots->len; slot++)
    if (at_slot (model, slot) != NULL)
      counts.min_tasks = MAX (counts.min_tasks, at_slot (model, slot)->min_tasks);
  return counts;
}

/* Room for another one: of those without members, any goes. */
static gboolean
has_room (MusterMemberRegistry *self)
{
  GHashTableIter iter;
  gpointer value;
  if (g_hash_table_size (self->models) < MAX_MODELS)
    return TRUE;
  g_hash_table_iter_init (&iter, self->models);
  while (g_hash_table_iter_next (&iter, NULL, &value))
    if (((Model *)value)->n_members == 0) {
      g_hash_table_iter_remove (&iter);
      return TRUE;
    }
  return FALSE;
}

static Model *
find_or_add (MusterMemberRegistry *self, const char *name, GError **error)
{
  Model *model = g_hash_table_lookup (self->models, name);
  if (model != NULL)
    return model;
  if (!has_room (self)) {
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "can't keep the members of '%s': models are limited to %d", name, MAX_MODELS);
    return NULL;
  }
  model = g_new0 (Model, 1);
  model->name = g_strdup (name);
  model->slots = g_ptr_array_new ();
  g_hash_table_insert (self->models, model->name, model);
  return model;
}

static gboolean
refuse_taken (const Member *holder, GError **error)
{
  const MusterMember *member = &holder->member;
  return muster_fail (
      error, MUSTER_ERROR_FAILED_PRECONDITION, "slot %u of '%s' has a living member, %s%s%s%s",
      member->slot, holder->model->name, *member->task != '\0' ? member->task : "a task",
      *member->who != '\0' ? " (" : "", member->who, *member->who != '\0' ? ")" : "");
}

/* Decides about the slot. */
static gboolean
choose_slot (Model *model, const MusterMemberRequest *request, guint *slot, GError **error)
{
  if (model->n_members > 0 && model->n_slots != (guint)request->n_slots)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "'%s' has %u slots, not %d: all of its tasks must say the same",
                        model->name, model->n_slots, request->n_slots);
  model->n_slots = (guint)request->n_slots;
  if (request->slot < 0 && model->n_members >= model->n_slots)
    return muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                        "all %u slots of '%s' have a member: wait until one leaves, or start the "
                        "job with more slots",
                        model->n_slots, model->name);
  while (at_slot (model, model->lowest) != NULL)
    model->lowest++;
  *slot = request->slot < 0 ? model->lowest : (guint)request->slot;
  const Member *holder = at_slot (model, *slot);
  return holder == NULL || refuse_taken (holder, error);
}

/* The member that comes back, or NULL. */
static Member *
find_returning (MusterMemberRegistry *self, const MusterMemberRequest *request)
{
  Member *member = g_hash_table_lookup (self->members, &request->id);
  if (member == NULL || !g_str_equal (member->model->name, request->model) ||
      request->slot != (gint)member->member.slot)
    return NULL;
  return member;
}

/* Numbers of a registry share their upper half. */
static gboolean
is_of_another (const MusterMemberRegistry *self, guint64 id)
{
  return id != 0 && id >> 32 != self->next_id >> 32;
}

static void
gather (MusterMemberRegistry *self, Model *model, gint64 now_us)
{
  if (model->gathers_us != 0)
    return;
  model->gathers_us = muster_deadline_after (now_us, MUSTER_GATHER_US);
  self->looks_us = MIN (self->looks_us, model->gathers_us);
}

static Member *
add (MusterMemberRegistry *self, Model *model, const MusterMemberRequest *request, guint slot,
     gint64 now_us)
{
  Member *member = g_new0 (Member, 1);
  member->model = model;
  member->min_tasks = (guint)request->min_tasks;
  member->member = (MusterMember){
      .id = ++self->next_id,
      .slot = slot,
      .task = g_strdup (request->task),
      .who = g_strdup (request->who),
      .n_batches = request->n_batches,
      .is_takeover = request->is_takeover,
  };
  member->joined_us = member->early_us = member->late_us = now_us;
  member->n_early = member->n_late = request->n_batches;
  if (slot >= model->slots->len)
    g_ptr_array_set_size (model->slots, (gint)slot + 1);
  model->slots->pdata[slot] = member;
  model->n_members++;
  g_hash_table_insert (self->members, &member->member.id, member);
  if (!request->is_takeover) {
    model->n_tasks++;
    self->n_joined++;
  }
  return member;
}

/* When to look at its lease again. */
static gint64
look_at_lease (MusterMemberRegistry *self, Member *member, gint64 now_us)
{
  return muster_lease_look (self->lease_us, member->heard_us, now_us, &member->doubted_us);
}

static void
renew (MusterMemberRegistry *self, Member *member, gint64 n_batches, gint64 now_us)
{
  member->heard_us = now_us;
  self->looks_us = MIN (self->looks_us, look_at_lease (self, member, now_us));
  member->member.n_batches = MAX (member->member.n_batches, n_batches);
  if (now_us - member->late_us < RATE_US)
    return;
  member->early_us = member->late_us;
  member->n_early = member->n_late;
  member->late_us = now_us;
  member->n_late = member->member.n_batches;
}

static void
describe (const Member *entry, gint64 now_us, MusterMember *out)
{
  const gint64 until_us = entry->member.end == MUSTER_MEMBER_STAYS ? now_us : entry->left_us;
  const gint64 over_us = until_us - entry->early_us;
  *out = entry->member;
  out->task = g_strdup (entry->member.task);
  out->who = g_strdup (entry->member.who);
  out->age_us = until_us - entry->joined_us;
  out->silent_us = until_us - entry->heard_us;
  out->left_age_us = now_us - until_us;
  if (over_us > 0)
    out->batches_per_second =
        (double)(out->n_batches - entry->n_early) * MUSTER_SECOND / (double)over_us;
}

/* --- joining and leaving --- */

guint64
muster_member_registry_join (MusterMemberRegistry *self, const MusterMemberRequest *request,
                             guint *slot, GError **error)
{
  if (!check_request (request, error))
    return 0;
  gint64 now_us = muster_clock_now_us (self->clock);
  MusterMember joined = {0};
  guint64 id = 0;
  g_mutex_lock (&self->lock);
  Member *member = find_returning (self, request);
  if (member == NULL && g_hash_table_size (self->members) >= MAX_MEMBERS) {
    muster_fail (error, MUSTER_ERROR_RESOURCE_EXHAUSTED,
                 "can't add a member to '%s': members are limited to %d", request->model,
                 MAX_MEMBERS);
  } else if (member == NULL) {
    Model *model = find_or_add (self, request->model, error);
    if (model != NULL && choose_slot (model, request, slot, error)) {
      member = add (self, model, request, *slot, now_us);
      if (is_of_another (self, request->id))
        gather (self, model, now_us);
      describe (member, now_us, &joined);
    }
  }
  if (member != NULL) {
    renew (self, member, request->n_batches, now_us);
    id = member->member.id;
    *slot = member->member.slot;
  }
  g_mutex_unlock (&self->lock);
  if (joined.id != 0) {
    muster_member_log_joined (request->model, &joined);
    notify (self, request->model, joined.is_takeover);
  }
  muster_member_clear (&joined);
  return id;
}

gboolean
muster_member_registry_report (MusterMemberRegistry *self, guint64 id, gint64 n_batches,
                               GError **error)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  g_mutex_lock (&self->lock);
  Member *member = g_hash_table_lookup (self->members, &id);
  if (member != NULL)
    renew (self, member, n_batches, now_us);
  g_mutex_unlock (&self->lock);
  if (member != NULL)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "there is no such member (any more); join again");
}

/* What is told about one that was removed. */
typedef struct {
  char *model; /* (owned) */
  MusterMember member;
} Leaver;

static void
leaver_clear (gpointer data)
{
  Leaver *self = data;
  g_free (self->model);
  muster_member_clear (&self->member);
}

/* A task that has left is remembered. */
static void
remember (MusterMemberRegistry *self, Member *member)
{
  Model *model = member->model;
  model->n_tasks--;
  g_queue_push_head (&model->left, member);
  if (model->left.length > MAX_LEFT)
    entry_free (g_queue_pop_tail (&model->left));
  self->n_left[member->member.end]++;
}

/* Call with the lock held; then announce () without it. */
static void
take_out (MusterMemberRegistry *self, Member *member, MusterMemberEnd end, gint64 now_us,
          Leaver *leaver)
{
  Model *model = member->model;
  const guint slot = member->member.slot;
  g_hash_table_steal (self->members, &member->member.id);
  member->member.end = end;
  member->left_us = now_us;
  leaver->model = g_strdup (model->name);
  describe (member, now_us, &leaver->member);
  model->slots->pdata[slot] = NULL;
  model->lowest = MIN (model->lowest, slot);
  model->n_members--;
  if (member->member.is_takeover)
    entry_free (member);
  else
    remember (self, member);
}

static void
announce (MusterMemberRegistry *self, const Leaver *leaver)
{
  muster_member_log_left (leaver->model, &leaver->member);
  notify (self, leaver->model, leaver->member.is_takeover);
}

gboolean
muster_member_registry_remove (MusterMemberRegistry *self, guint64 id, MusterMemberEnd end)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  Leaver leaver = {0};
  g_mutex_lock (&self->lock);
  Member *member = g_hash_table_lookup (self->members, &id);
  if (member != NULL)
    take_out (self, member, end, now_us, &leaver);
  g_mutex_unlock (&self->lock);
  if (member != NULL)
    announce (self, &leaver);
  leaver_clear (&leaver);
  return member != NULL;
}

/* Takes those out whose lease has ended, and finds when to look again. */
static void
take_silent (MusterMemberRegistry *self, gint64 now_us, GArray *leavers)
{
  g_autoptr (GPtrArray) silent = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer value;
  self->looks_us = MUSTER_WAIT_FOREVER;
  g_hash_table_iter_init (&iter, self->members);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    const gint64 next_us = look_at_lease (self, value, now_us);
    if (next_us <= now_us)
      g_ptr_array_add (silent, value);
    else
      self->looks_us = MIN (self->looks_us, next_us);
  }
  for (guint i = 0; i < silent->len; i++) {
    Leaver leaver = {0};
    take_out (self, silent->pdata[i], MUSTER_MEMBER_SILENT, now_us, &leaver);
    g_array_append_val (leavers, leaver);
  }
}

/* Ends the gathering of models whose time is over: names (element-type utf8). */
static void
end_gathering (MusterMemberRegistry *self, gint64 now_us, GPtrArray *names)
{
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, self->models);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    Model *model = value;
    if (model->gathers_us > now_us)
      self->looks_us = MIN (self->looks_us, model->gathers_us);
    else if (model->gathers_us != 0)
      g_ptr_array_add (names, g_strdup (model->name));
    if (model->gathers_us <= now_us)
      model->gathers_us = 0;
  }
}

gint64
muster_member_registry_expire (MusterMemberRegistry *self, GArray *gone)
{
  g_autoptr (GPtrArray) gathered = g_ptr_array_new_with_free_func (g_free);
  g_autoptr (GArray) leavers = g_array_new (FALSE, FALSE, sizeof (Leaver));
  gint64 now_us = muster_clock_now_us (self->clock);
  g_array_set_clear_func (leavers, leaver_clear);
  g_mutex_lock (&self->lock);
  if (self->looks_us <= now_us) {
    take_silent (self, now_us, leavers);
    end_gathering (self, now_us, gathered);
  }
  gint64 next_us = self->looks_us;
  g_mutex_unlock (&self->lock);
  for (guint i = 0; i < leavers->len; i++) {
    const Leaver *leaver = &g_array_index (leavers, Leaver, i);
    g_array_append_val (gone, leaver->member.id);
    announce (self, leaver);
  }
  for (guint i = 0; i < gathered->len; i++)
    notify (self, gathered->pdata[i], FALSE);
  return next_us;
}

/* --- looking --- */

void
muster_member_registry_roster (MusterMemberRegistry *self, const char *model, GArray *slots,
                               GArray *ids, MusterMemberCounts *counts)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const Model *found = g_hash_table_lookup (self->models, model);
  for (guint slot = 0; found != NULL && slot < found->slots->len; slot++) {
    const Member *member = at_slot (found, slot);
    if (member == NULL)
      continue;
    g_array_append_val (slots, member->member.slot);
    g_array_append_val (ids, member->member.id);
  }
  *counts = found != NULL ? count_tasks (found) : (MusterMemberCounts){0};
}

void
muster_member_registry_count (MusterMemberRegistry *self, const char *model,
                              MusterMemberCounts *counts)
{
  g_autoptr (GMutexLocker) locker = g_mutex_locker_new (&self->lock);
  const Model *found = g_hash_table_lookup (self->models, model);
  *counts = found != NULL ? count_tasks (found) : (MusterMemberCounts){0};
}

static void
add_copy (GPtrArray *to, const Member *member, gint64 now_us)
{
  MusterMember *copy = g_new (MusterMember, 1);
  describe (member, now_us, copy);
  g_ptr_array_add (to, copy);
}

static MusterMembers *
describe_all (const Model *model, guint most, gint64 now_us)
{
  MusterMembers *all = g_new (MusterMembers, 1);
  const MusterMemberCounts counts = count_tasks (model);
  *all = (MusterMembers){
      .model = g_strdup (model->name),
      .n_slots = model->n_slots,
      .n_members = counts.n_tasks,
      .min_tasks = counts.min_tasks,
      .members = g_ptr_array_new_with_free_func (muster_member_free),
      .left = g_ptr_array_new_with_free_func (muster_member_free),
  };
  for (guint slot = 0; slot < model->slots->len && all->members->len < most; slot++)
    if (at_slot (model, slot) != NULL && !at_slot (model, slot)->member.is_takeover)
      add_copy (all->members, at_slot (model, slot), now_us);
  for (GList *at = model->left.head; at != NULL; at = at->next)
    add_copy (all->left, at->data, now_us);
  return all;
}

static gint
compare_names (gconstpointer a, gconstpointer b)
{
  const MusterMembers *const *one = a;
  const MusterMembers *const *other = b;
  return strcmp ((*one)->model, (*other)->model);
}

static gboolean
is_past (const Model *model, gint64 now_us)
{
  const Member *last = g_queue_peek_head ((GQueue *)&model->left);
  return model->n_members == 0 && (last == NULL || now_us - last->left_us >= PAST_AFTER_US);
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
    if (is_past (model, now_us))
      g_hash_table_iter_remove (&iter);
    else
      g_ptr_array_add (all, describe_all (model, most, now_us));
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
