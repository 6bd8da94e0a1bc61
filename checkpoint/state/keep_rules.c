// SPDX-License-Identifier: Apache-2.0
/* The rules of retention, without I/O. muster_keep_decide () marks each checkpoint with the
 * reasons for which it stays; what has no reason is removed. The last part puts reasons into words.
 * */
#include "checkpoint/state/keep_rules_private.h"

#include "base/error.h"

#include <math.h>
#include <string.h>

#define HOUR 3600.0

void
muster_keep_rules_clear (MusterKeepRules *self)
{
  g_clear_pointer (&self->metric, g_free);
}

void
muster_keep_rules_copy (const MusterKeepRules *from, MusterKeepRules *self)
{
  *self = *from;
  self->metric = g_strdup (from->metric);
}

void
muster_keep_rules_inherit (MusterKeepRules *self, const MusterKeepRules *recorded)
{
  if (recorded != NULL && self->every_steps == 0)
    self->every_steps = recorded->every_steps;
  if (recorded != NULL && self->best == 0)
    self->best = recorded->best;
  if (recorded != NULL && self->metric == NULL) {
    self->metric = g_strdup (recorded->metric);
    self->least_is_best = recorded->least_is_best;
  }
  self->every_steps = MAX (self->every_steps, 0);
  self->best = self->metric != NULL ? MAX (self->best, 0) : 0;
}

/* --- a metric's name --- */

static gboolean
is_printable (const char *name)
{
  for (const char *c = name; *c; c = g_utf8_next_char (c))
    if (g_unichar_iscntrl (g_utf8_get_char (c)))
      return FALSE;
  return TRUE;
}

char *
muster_keep_metric_name (const char *name, GError **error)
{
  const gsize n = strlen (name);
  if (n > 0 && g_utf8_validate (name, -1, NULL) && is_printable (name) && strcmp (name, ":0") != 0)
    return g_strndup (name, g_str_has_suffix (name, ":0") ? n - 2 : n);
  muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
               "invalid metric name '%s' (use a name such as loss or eval/accuracy)", name);
  return NULL;
}

gboolean
muster_keep_rules_parse_metric (MusterKeepRules *self, const char *spec, GError **error)
{
  const char *colon = strrchr (spec, ':');
  const gboolean is_max = colon != NULL && strcmp (colon, ":max") == 0;
  if (!is_max && (colon == NULL || strcmp (colon, ":min") != 0))
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                        "invalid metric '%s' (use NAME:max or NAME:min, such as loss:min)", spec);
  g_autofree char *given = g_strndup (spec, (gsize)(colon - spec));
  g_autofree char *name = muster_keep_metric_name (given, error);
  if (name == NULL)
    return FALSE;
  g_free (self->metric);
  self->metric = g_steal_pointer (&name);
  self->least_is_best = !is_max;
  return TRUE;
}

/* --- the decision --- */

static gboolean
is_managed (const MusterKeepOne *one)
{
  return one->standing == MUSTER_KEEP_MANAGED;
}

static void
keep_standing (MusterKeepOne *one)
{
  static const guint reasons[] = {[MUSTER_KEEP_MANAGED] = 0,
                                  [MUSTER_KEEP_PINNED] = MUSTER_KEEP_FOR_PIN,
                                  [MUSTER_KEEP_PRESERVED] = MUSTER_KEEP_FOR_GOOD,
                                  [MUSTER_KEEP_UNMANAGED] = MUSTER_KEEP_FOR_OTHERS};
  one->reasons = reasons[one->standing] | (one->is_latest ? MUSTER_KEEP_FOR_LATEST : 0u) |
                 (one->is_held && is_managed (one) ? MUSTER_KEEP_FOR_READER : 0u);
}

static void
keep_newest (const MusterKeepRules *rules, MusterKeepOne *all, gsize n)
{
  int kept = 0;
  for (gsize i = n; i-- > 0;)
    if (is_managed (&all[i]) && (rules->newest <= 0 || kept++ < rules->newest))
      all[i].reasons |= MUSTER_KEEP_FOR_NEWEST;
}

/* The better of two; of equal ones the second, which is newer. */
static gboolean
is_beaten (const MusterKeepRules *rules, double value, double by)
{
  return rules->least_is_best ? by <= value : by >= value;
}

static void
keep_best (const MusterKeepRules *rules, MusterKeepOne *all, gsize n)
{
  for (int taken = 0; taken < rules->best; taken++) {
    MusterKeepOne *best = NULL;
    for (gsize i = 0; i < n; i++)
      if (isfinite (all[i].value) && (all[i].reasons & MUSTER_KEEP_FOR_BEST) == 0 &&
          (best == NULL || is_beaten (rules, best->value, all[i].value)))
        best = &all[i];
    if (best == NULL)
      return;
    best->reasons |= MUSTER_KEEP_FOR_BEST;
  }
}

/* Returns TRUE for the first one of its branch at or after a multiple; reached has the multiples
 * of each branch before it. One that is kept for another reason counts for its multiple, too. */
static gboolean
reaches_multiple (const MusterKeepRules *rules, const MusterKeepOne *one, GHashTable *reached[2])
{
  gint64 multiple = one->step / rules->every_steps;
  const gboolean is_first =
      multiple > 0 &&
      g_hash_table_add (reached[one->is_left ? 1 : 0], g_memdup2 (&multiple, sizeof multiple));
  return is_first || one->step % rules->every_steps == 0;
}

static void
keep_steps (const MusterKeepRules *rules, MusterKeepOne *all, gsize n)
{
  g_autoptr (GHashTable) now = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  g_autoptr (GHashTable) left = g_hash_table_new_full (g_int64_hash, g_int64_equal, g_free, NULL);
  GHashTable *reached[2] = {now, left};
  for (gsize i = 0; rules->every_steps > 0 && i < n; i++)
    if (all[i].step >= 0 && reaches_multiple (rules, &all[i], reached) && is_managed (&all[i]))
      all[i].reasons |= MUSTER_KEEP_FOR_STEP;
}

/* After a gap, the saver's mark moves over the periods in which nothing was saved: they keep
 * nothing (SAV.54, SAV.83). */
static gboolean
is_of_its_time (const MusterKeepRules *rules, double time, double *mark)
{
  if (rules->every_s <= 0)
    return FALSE;
  if (rules->by_last_kept) {
    if (time - rules->every_s < *mark)
      return FALSE;
    *mark = time;
    return TRUE;
  }
  if (time <= *mark + rules->every_s)
    return FALSE;
  *mark += floor ((time - *mark) / rules->every_s) * rules->every_s;
  return TRUE;
}

/* Asked once for each checkpoint, when it leaves the newest ones: later the mark has passed it.
 * */
static void
keep_for_time (const MusterKeepRules *rules, MusterKeepOne *all, gsize n, double *mark)
{
  for (gsize i = 0; i < n; i++) {
    MusterKeepOne *one = &all[i];
    if (one->standing == MUSTER_KEEP_PRESERVED && rules->by_last_kept && isfinite (one->time))
      *mark = MAX (*mark, one->time);
    if (!is_managed (one) || (one->reasons & MUSTER_KEEP_FOR_NEWEST) != 0)
      continue;
    if (isinf (one->time))
      one->reasons |= MUSTER_KEEP_FOR_GOOD;
    else if (is_of_its_time (rules, one->time, mark))
      one->reasons |= MUSTER_KEEP_FOR_TIME;
  }
}

void
muster_keep_decide (const MusterKeepRules *rules, MusterKeepOne *all, gsize n, double *mark)
{
  for (gsize i = 0; i < n; i++)
    keep_standing (&all[i]);
  keep_newest (rules, all, n);
  keep_best (rules, all, n);
  keep_steps (rules, all, n);
  keep_for_time (rules, all, n, mark);
}

gboolean
muster_keep_is_for_good (const MusterKeepOne *one)
{
  const guint for_good = MUSTER_KEEP_FOR_STEP | MUSTER_KEEP_FOR_TIME | MUSTER_KEEP_FOR_GOOD;
  return is_managed (one) && !muster_keep_is_listed (one) && (one->reasons & for_good) != 0;
}

gboolean
muster_keep_is_listed (const MusterKeepOne *one)
{
  return (one->reasons & (MUSTER_KEEP_FOR_NEWEST | MUSTER_KEEP_FOR_LATEST)) != 0;
}

/* --- in words --- */

static void
add_reason (GStrvBuilder *words, char *reason)
{
  g_autofree char *own = reason;
  g_strv_builder_add (words, own);
}

static char *
best_in_words (const MusterKeepRules *rules, double value)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup_printf ("best (%s %s)", rules->metric != NULL ? rules->metric : "metric",
                          g_ascii_formatd (number, sizeof number, "%.6g", value));
}

static char *
step_in_words (const MusterKeepRules *rules)
{
  return g_strdup_printf ("every %" G_GINT64_FORMAT " steps", rules->every_steps);
}

static char *
time_in_words (const MusterKeepRules *rules)
{
  char number[G_ASCII_DTOSTR_BUF_SIZE];
  return g_strdup_printf ("every %s h",
                          g_ascii_formatd (number, sizeof number, "%.4g", rules->every_s / HOUR));
}

char *
muster_keep_explain_good (const MusterKeepRules *rules, const MusterKeepOne *one)
{
  if (one->reasons & MUSTER_KEEP_FOR_STEP)
    return step_in_words (rules);
  return one->reasons & MUSTER_KEEP_FOR_TIME ? time_in_words (rules) : NULL;
}

char **
muster_keep_explain (const MusterKeepRules *rules, const MusterKeepOne *one, const char *pinned,
                     const char *preserved)
{
  g_autoptr (GStrvBuilder) words = g_strv_builder_new ();
  const guint reasons = one->reasons;
  if (reasons & MUSTER_KEEP_FOR_LATEST)
    g_strv_builder_add (words, "latest");
  if (reasons & MUSTER_KEEP_FOR_NEWEST)
    g_strv_builder_add (words, "newest");
  if (reasons & MUSTER_KEEP_FOR_BEST)
    add_reason (words, best_in_words (rules, one->value));
  if (reasons & MUSTER_KEEP_FOR_STEP)
    add_reason (words, step_in_words (rules));
  if (reasons & MUSTER_KEEP_FOR_TIME)
    add_reason (words, time_in_words (rules));
  if (reasons & MUSTER_KEEP_FOR_PIN)
    add_reason (words,
                pinned != NULL ? g_strdup_printf ("pinned (%s)", pinned) : g_strdup ("pinned"));
  if (reasons & MUSTER_KEEP_FOR_GOOD)
    g_strv_builder_add (words, preserved != NULL ? preserved : "for good");
  if (reasons & MUSTER_KEEP_FOR_READER)
    g_strv_builder_add (words, "being evaluated");
  return g_strv_builder_end (words);
}
