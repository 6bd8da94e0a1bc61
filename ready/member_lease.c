// SPDX-License-Identifier: Apache-2.0
/* How long a member stays: a report renews its lease. It is removed when it leaves, its process
 * ends or its lease ends. */
#include "ready/lease_look_private.h"
#include "ready/member_registry_state_private.h"

/* When to check a lease again. It has ended if that isn't later than now_us. */
static gint64
check_lease (MusterMemberRegistry *self, MusterMemberEntry *member, gint64 now_us)
{
  return muster_lease_look (self->lease_us, member->heard_us, now_us, &member->doubted_us);
}

void
muster_member_registry_renew (MusterMemberRegistry *self, MusterMemberEntry *member,
                              gint64 n_batches, gint64 now_us)
{
  muster_member_entry_renew (member, n_batches, now_us);
  self->looks_us = MIN (self->looks_us, check_lease (self, member, now_us));
}

gboolean
muster_member_registry_report (MusterMemberRegistry *self, guint64 id, gint64 n_batches,
                               GError **error)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  g_mutex_lock (&self->lock);
  MusterMemberEntry *member = g_hash_table_lookup (self->members, &id);
  if (member != NULL)
    muster_member_registry_renew (self, member, n_batches, now_us);
  g_mutex_unlock (&self->lock);
  if (member != NULL)
    return TRUE;
  return muster_fail (error, MUSTER_ERROR_FAILED_PRECONDITION,
                      "the job has no such member (any more); join again");
}

/* --- leaving --- */

/* A member that was removed, for the log and the listener. */
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

/* Call with the lock held; then announce () without it. */
static void
take_out (MusterMemberRegistry *self, MusterMemberEntry *member, MusterMemberEnd end, gint64 now_us,
          Leaver *leaver)
{
  leaver->model = g_strdup (member->model->name);
  g_hash_table_steal (self->members, &member->member.id);
  muster_member_model_remove (member, end, now_us, &leaver->member);
  if (!leaver->member.is_takeover)
    self->n_left[end]++;
}

static void
announce (MusterMemberRegistry *self, const Leaver *leaver)
{
  muster_member_log_left (leaver->model, &leaver->member);
  muster_member_registry_notify (self, leaver->model, leaver->member.is_takeover);
}

gboolean
muster_member_registry_remove (MusterMemberRegistry *self, guint64 id, MusterMemberEnd end)
{
  gint64 now_us = muster_clock_now_us (self->clock);
  Leaver leaver = {0};
  g_mutex_lock (&self->lock);
  MusterMemberEntry *member = g_hash_table_lookup (self->members, &id);
  if (member != NULL)
    take_out (self, member, end, now_us, &leaver);
  g_mutex_unlock (&self->lock);
  if (member != NULL)
    announce (self, &leaver);
  leaver_clear (&leaver);
  return member != NULL;
}

/* --- expiring --- */

/* Removes the members whose lease has ended, and finds when to check again. */
static void
take_silent (MusterMemberRegistry *self, gint64 now_us, GArray *leavers)
{
  g_autoptr (GPtrArray) silent = g_ptr_array_new ();
  GHashTableIter iter;
  gpointer value;
  self->looks_us = MUSTER_WAIT_FOREVER;
  g_hash_table_iter_init (&iter, self->members);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    const gint64 next_us = check_lease (self, value, now_us);
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

/* Ends the gathering of models whose time is over, and appends their names to names (element-type
 * utf8). */
static void
end_gathering (MusterMemberRegistry *self, gint64 now_us, GPtrArray *names)
{
  GHashTableIter iter;
  gpointer value;
  g_hash_table_iter_init (&iter, self->models);
  while (g_hash_table_iter_next (&iter, NULL, &value)) {
    MusterMemberModel *model = value;
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
    muster_member_registry_notify (self, gathered->pdata[i], FALSE);
  return next_us;
}
