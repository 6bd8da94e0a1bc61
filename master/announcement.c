// SPDX-License-Identifier: Apache-2.0
/* What a chief announces of its model: phase, step, durable checkpoint, saves, goodput. Merging
 * keeps earlier values for fields that a message leaves out, and the texts describe a chief in
 * messages. */
#include "master/announcement.h"

#include <string.h>

const char *
muster_chief_phase_name (MusterChiefPhase phase)
{
  static const char *const names[] = {
      [MUSTER_CHIEF_UNKNOWN] = "unknown",       [MUSTER_CHIEF_STARTING] = "starting",
      [MUSTER_CHIEF_RESTORING] = "restoring",   [MUSTER_CHIEF_INITIALISING] = "initialising",
      [MUSTER_CHIEF_LOCAL_INIT] = "local init", [MUSTER_CHIEF_PREPARED] = "prepared",
      [MUSTER_CHIEF_TRAINING] = "training",     [MUSTER_CHIEF_OVER] = "over",
  };
  return (guint)phase < G_N_ELEMENTS (names) ? names[phase] : names[MUSTER_CHIEF_UNKNOWN];
}

gboolean
muster_chief_phase_is_preparing (MusterChiefPhase phase)
{
  return phase >= MUSTER_CHIEF_STARTING && phase <= MUSTER_CHIEF_LOCAL_INIT;
}

void
muster_announcement_clear (MusterAnnouncement *self)
{
  g_return_if_fail (self != NULL);
  g_free (self->model);
  g_free (self->task);
  g_free (self->who);
  g_free (self->durable);
  g_free (self->detail);
  muster_save_status_free (self->saves);
  g_free (self->holder);
  g_free (self->ended);
  g_free (self->goodput);
  *self = (MusterAnnouncement)MUSTER_ANNOUNCEMENT_INIT;
}

MusterAnnouncement *
muster_announcement_copy (const MusterAnnouncement *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  MusterAnnouncement *copy = g_memdup2 (self, sizeof *self);
  copy->model = g_strdup (self->model);
  copy->task = g_strdup (self->task);
  copy->who = g_strdup (self->who);
  copy->durable = g_strdup (self->durable);
  copy->detail = g_strdup (self->detail);
  copy->saves = muster_save_status_copy (self->saves);
  copy->holder = g_strdup (self->holder);
  copy->ended = g_strdup (self->ended);
  copy->goodput = muster_goodput_copy (self->goodput);
  return copy;
}

void
muster_announcement_free (MusterAnnouncement *self)
{
  if (self == NULL)
    return;
  muster_announcement_clear (self);
  g_free (self);
}

static void
put (char **place, const char *text)
{
  char *copy = g_strdup (text);
  g_free (*place);
  *place = copy;
}

void
muster_announcement_merge (MusterAnnouncement *self, const MusterAnnouncement *later)
{
  g_return_if_fail (self != NULL && later != NULL);
  gboolean is_next = later->phase != MUSTER_CHIEF_UNKNOWN && later->phase != self->phase;
  if (is_next)
    self->phase = later->phase;
  if (is_next || later->detail != NULL)
    put (&self->detail, later->detail);
  if (later->step >= 0)
    self->step = later->step;
  if (later->holder != NULL)
    put (&self->holder, later->holder);
  self->failed |= later->failed;
  if (later->ended != NULL)
    put (&self->ended, later->ended);
  if (later->drain != MUSTER_DRAIN_NONE)
    self->drain = later->drain;
  if (later->saves != NULL) {
    muster_save_status_free (self->saves);
    self->saves = muster_save_status_copy (later->saves);
  }
  if (later->goodput != NULL) {
    g_free (self->goodput);
    self->goodput = muster_goodput_copy (later->goodput);
  }
  if (later->durable_step >= 0) {
    self->durable_step = later->durable_step;
    self->durable_age_us = later->durable_age_us;
    put (&self->durable, later->durable);
  }
  /* a save is announced at once, a step once a second, of what the chief had seen by then */
  self->step = MAX (self->step, self->durable_step);
}

/* Compares everything except the age. */
static gboolean
is_same_goodput (const MusterGoodput *a, const MusterGoodput *b)
{
  if (a == NULL || b == NULL)
    return a == b;
  return memcmp (a->spent_us, b->spent_us, sizeof a->spent_us) == 0 && a->began_us == b->began_us &&
         a->n_restarts == b->n_restarts && a->step == b->step && a->end == b->end;
}

gboolean
muster_announcement_equal (const MusterAnnouncement *a, const MusterAnnouncement *b)
{
  if (a == NULL || b == NULL)
    return a == b;
  return a->phase == b->phase && a->epoch == b->epoch && a->step == b->step &&
         a->durable_step == b->durable_step && a->alive == b->alive && a->prepared == b->prepared &&
         a->is_ready == b->is_ready && g_strcmp0 (a->model, b->model) == 0 &&
         g_strcmp0 (a->task, b->task) == 0 && g_strcmp0 (a->who, b->who) == 0 &&
         g_strcmp0 (a->durable, b->durable) == 0 && g_strcmp0 (a->detail, b->detail) == 0 &&
         g_strcmp0 (a->holder, b->holder) == 0 && g_strcmp0 (a->ended, b->ended) == 0 &&
         a->failed == b->failed && a->drain == b->drain &&
         muster_save_status_equal (a->saves, b->saves) && is_same_goodput (a->goodput, b->goodput);
}

const char *
muster_announcement_end_word (const MusterAnnouncement *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  return self->failed ? "failed" : self->ended != NULL ? self->ended : "lost";
}

char *
muster_announcement_owner (const MusterAnnouncement *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  gboolean has_task = self->task != NULL && *self->task != '\0';
  gboolean has_who = self->who != NULL && *self->who != '\0';
  if (has_task && has_who)
    return g_strdup_printf ("%s (%s)", self->task, self->who);
  return g_strdup (has_task ? self->task : has_who ? self->who : "a nameless chief");
}

char *
muster_announcement_describe (const MusterAnnouncement *self)
{
  g_return_val_if_fail (self != NULL, NULL);
  g_autofree char *duration =
      muster_format_duration (self->alive ? self->phase_age_us : self->lost_age_us);
  const char *phase = muster_chief_phase_name (self->phase);
  g_autofree char *name = muster_announcement_owner (self);
  if (self->alive)
    return g_strdup_printf ("%s, %s for %s", name, phase, duration);
  const char *why = self->failed && self->ended != NULL ? self->ended : NULL;
  return g_strdup_printf ("%s, %s %s ago, last phase %s%s%s", name,
                          muster_announcement_end_word (self), duration, phase,
                          why != NULL ? ": " : "", why != NULL ? why : "");
}
