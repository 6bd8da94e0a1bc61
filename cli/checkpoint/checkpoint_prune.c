// SPDX-License-Identifier: Apache-2.0
/* `muster checkpoint prune`: decides by the rules, takes checkpoints from the state file, then
 * removes their files, all under the directory's lock. */
#include "cli/checkpoint/checkpoint.h"

#include "checkpoint/state/checkpoint_removal_private.h"
#include "checkpoint/state/checkpoint_state.h"
#include "checkpoint/state/quarantine.h"
#include "checkpoint/store/directory_lock_private.h"
#include "checkpoint/store/storage_failure_private.h"
#include "cli/checkpoint/checkpoint_keep.h"
#include "cli/checkpoint/checkpoint_list.h"
#include "cli/checkpoint/checkpoint_open.h"
#include "cli/common/cli.h"
#include "cli/output/table.h"

#include <string.h>

static const char summary[] =
    "Removes the oldest checkpoints of each directory. Keeps the newest N of each name, those "
    "that\n"
    "the job that saved them keeps as the best or for their step and, with --keep-every, one for\n"
    "every period of that many hours. Never removes the latest checkpoint, those pinned or kept "
    "for\n"
    "good, those set aside, or one that is being read. In an object store it also abandons parts "
    "of\n"
    "uploads that were begun more than a day ago.";

/* A saver that is alive may still be sending what is younger. */
#define ABANDONED_US (24 * 3600 * MUSTER_SECOND)

#define IN_USE "in use"

static const char removed[] = "removed";

/* So many failures of one cause are the store's: nothing more is tried. */
#define MOST_ALIKE 16

/* One checkpoint, and what becomes of it. */
typedef struct {
  MusterListed *listed; /* (owned) */
  const char *action;   /* static: "kept", "removed", "left", "would remove" */
  char *why;            /* (owned) (nullable) */
  gboolean goes;
} Plan;

typedef struct {
  const char *directory; /* (not owned) */
  MusterKeepRules rules;
  gboolean dry_run, json;
  gboolean is_one;                /* the only directory */
  MusterCheckpointRecord *record; /* (owned) */
  GPtrArray *plans;               /* (owned) (element-type Plan) oldest first */
  GPtrArray *state_files;         /* (owned) (element-type utf8) */
  GError *failure;                /* (owned) (nullable) of the first removal that failed */
} Prune;

static void
plan_free (gpointer data)
{
  Plan *self = data;
  muster_listed_free (self->listed);
  g_free (self->why);
  g_free (self);
}

static void
prune_clear (Prune *self)
{
  g_clear_pointer (&self->record, muster_checkpoint_record_free);
  g_clear_pointer (&self->plans, g_ptr_array_unref);
  g_clear_pointer (&self->state_files, g_ptr_array_unref);
  g_clear_error (&self->failure);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Prune, prune_clear)

static gboolean
mark_latest (Prune *self, GError **error)
{
  g_autoptr (GPtrArray) listed = g_ptr_array_new ();
  for (guint i = 0; i < self->plans->len; i++)
    g_ptr_array_add (listed, ((const Plan *)self->plans->pdata[i])->listed);
  if (!muster_listed_read_states (listed, self->directory, self->state_files, error))
    return FALSE;
  for (guint i = 0; i < listed->len; i++)
    ((MusterListed *)listed->pdata[i])->latest = ((MusterListed *)listed->pdata[i])->is_head;
  return TRUE;
}

static gboolean
list (Prune *self, GError **error)
{
  g_auto (GStrv) prefixes = muster_checkpoint_list (muster_cli_storage (), self->directory, error);
  if (prefixes == NULL)
    return FALSE;
  self->plans = g_ptr_array_new_with_free_func (plan_free);
  for (char **it = prefixes; *it != NULL; it++) {
    Plan *plan = g_new0 (Plan, 1);
    plan->listed = muster_listed_new (*it, self->record, NULL);
    g_ptr_array_add (self->plans, plan);
  }
  self->state_files = muster_cli_state_files (self->record);
  return mark_latest (self, error);
}

/* What else keeps one that isn't among the newest. */
static char *
in_words (const MusterListed *listed)
{
  return (listed->reasons & MUSTER_KEEP_FOR_NEWEST) == 0 && listed->kept_for != NULL
             ? g_strjoinv (", ", listed->kept_for)
             : NULL;
}

static void
decide (Prune *self)
{
  g_autoptr (GPtrArray) listed = g_ptr_array_new ();
  for (guint i = 0; i < self->plans->len; i++)
    g_ptr_array_add (listed, ((const Plan *)self->plans->pdata[i])->listed);
  muster_listed_decide (listed, self->record, &self->rules);
  for (guint i = 0; i < self->plans->len; i++) {
    Plan *plan = self->plans->pdata[i];
    plan->goes = plan->listed->reasons == 0;
    plan->action = !plan->goes ? "kept" : self->dry_run ? "would remove" : NULL;
    plan->why = plan->goes ? NULL : in_words (plan->listed);
  }
}

static void
leave (Plan *plan, const char *why)
{
  plan->action = "left";
  g_free (plan->why);
  plan->why = g_strdup (why);
}

/* A checkpoint that is being read stays in the state file. */
static void
spare_those_in_use (Prune *self)
{
  for (guint i = 0; i < self->plans->len; i++) {
    Plan *plan = self->plans->pdata[i];
    if (plan->goes && muster_checkpoint_is_read (muster_cli_storage (), plan->listed->prefix)) {
      plan->goes = FALSE;
      leave (plan, IN_USE);
    }
  }
}

/* Removes the checkpoints to delete from the state file. */
static gboolean
rewrite_state (const Prune *self, const char *name, GError **error)
{
  g_autoptr (GError) failure = NULL;
  g_autoptr (MusterCheckpointState) state =
      muster_checkpoint_state_read_named (muster_cli_storage (), self->directory, name, &failure);
  if (state == NULL && failure == NULL)
    return TRUE;
  if (state == NULL) {
    g_propagate_error (error, g_steal_pointer (&failure));
    return FALSE;
  }
  gboolean changed = FALSE;
  for (guint i = 0; i < self->plans->len; i++) {
    const Plan *plan = self->plans->pdata[i];
    if (plan->goes && muster_checkpoint_state_forget (state, plan->listed->prefix))
      changed = TRUE;
  }
  return !changed || muster_checkpoint_state_write_named (muster_cli_storage (), self->directory,
                                                          name, state, error);
}

/* Marks pending deletes, as a saver does: if this command dies, the next saver or prune continues.
 * Returns TRUE if the record knows any. */
static gboolean
mark_pending_deletes (Prune *self)
{
  gboolean is_known = FALSE;
  for (guint i = 0; i < self->plans->len; i++) {
    const Plan *plan = self->plans->pdata[i];
    MusterSideCheckpoint *one =
        plan->goes ? muster_checkpoint_record_find (self->record, plan->listed->prefix) : NULL;
    is_known = is_known || one != NULL;
    if (one != NULL)
      one->pending_delete = TRUE;
  }
  return is_known;
}

/* Returns FALSE if the checkpoint couldn't be removed, unless it is being read. Then the next saver
 * or prune tries again, since it is a pending delete. */
static gboolean
remove_one (Prune *self, Plan *plan, GError **error)
{
  g_autoptr (GError) failure = NULL;
  if (muster_remove_checkpoint (muster_cli_storage (), plan->listed->prefix, &failure)) {
    plan->action = removed;
    muster_checkpoint_record_forget (self->record, plan->listed->prefix);
    return TRUE;
  }
  plan->goes = FALSE;
  const gboolean is_read = g_error_matches (failure, G_IO_ERROR, G_IO_ERROR_BUSY);
  leave (plan, is_read ? IN_USE : "removal failed");
  if (!is_read)
    g_propagate_error (error, g_steal_pointer (&failure));
  return is_read;
}

/* Goes on after a failure, unless the next one has the same cause: that is the store's. */
static gboolean
remove_plans (Prune *self, GError **error)
{
  g_autoptr (GError) first = g_steal_pointer (&self->failure);
  guint n_alike = first != NULL;
  for (guint i = 0; i < self->plans->len; i++) {
    Plan *plan = self->plans->pdata[i];
    g_autoptr (GError) failure = NULL;
    if (plan->goes && n_alike >= MOST_ALIKE) {
      plan->goes = FALSE;
      leave (plan, "not tried");
    }
    if (!plan->goes || plan->action == removed || remove_one (self, plan, &failure))
      continue;
    n_alike += first == NULL || g_error_matches (first, failure->domain, failure->code);
    if (first == NULL)
      first = g_steal_pointer (&failure);
    else if (!g_error_matches (first, failure->domain, failure->code))
      muster_cli_say (stderr, "muster: %s\n", failure->message);
  }
  if (first == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&first));
  return FALSE;
}

static gboolean
note (const Prune *self, gboolean is_known, GError **error)
{
  for (guint i = 0; i < self->state_files->len; i++)
    if (!rewrite_state (self, self->state_files->pdata[i], error))
      return FALSE;
  return !is_known || muster_checkpoint_record_write (muster_cli_storage (), self->directory,
                                                      self->record, error);
}

/* On a disk without a free byte nothing can be noted before a checkpoint is gone, as when a save
 * makes room: until then the state names that one, but also the latest, which stays. */
static gboolean
note_or_remove (Prune *self, gboolean is_known, GError **error)
{
  GError *failure = NULL;
  gboolean is_noted = note (self, is_known, &failure);
  for (guint i = 0; !is_noted && i < self->plans->len; i++) {
    Plan *plan = self->plans->pdata[i];
    if (!plan->goes)
      continue;
    if (!muster_storage_failure_is_full (failure)) {
      plan->goes = FALSE;
      leave (plan, "not tried");
    } else if (remove_one (self, plan, self->failure == NULL ? &self->failure : NULL) &&
               plan->action == removed) {
      g_clear_error (&failure);
      is_noted = note (self, is_known, &failure);
    }
  }
  if (!is_noted)
    g_propagate_error (error, failure);
  return is_noted;
}

static gboolean
remove_all (Prune *self, GError **error)
{
  const gboolean is_known = mark_pending_deletes (self);
  if (!note_or_remove (self, is_known, error))
    return FALSE;
  gboolean is_well = remove_plans (self, error);
  if (is_known)
    is_well = muster_checkpoint_record_write (muster_cli_storage (), self->directory, self->record,
                                              is_well ? error : NULL) &&
              is_well;
  return is_well;
}

static gboolean
is_told (const Plan *plan)
{
  return plan->action != NULL && (strcmp (plan->action, "kept") != 0 || plan->why != NULL);
}

/* Prints what happens to each checkpoint, except those that are kept by default. */
static void
print_plans (const Prune *self)
{
  g_autoptr (MusterTable) table = muster_table_new (4);
  for (guint i = 0; i < self->plans->len; i++) {
    const Plan *plan = self->plans->pdata[i];
    if (!is_told (plan))
      continue;
    g_autofree char *size = muster_format_size ((guint64)plan->listed->bytes);
    g_autofree char *ago = muster_cli_ago (plan->listed->when_us);
    g_autofree char *rest = g_strdup_printf ("%s%s%s", ago, plan->why != NULL ? "; " : "",
                                             plan->why != NULL ? plan->why : "");
    muster_table_add (table, plan->listed->prefix, plan->action, size, rest, NULL);
  }
  muster_table_print (table, stdout);
}

static void
print_text (const Prune *self)
{
  guint n_goes = 0, n_used = 0, n_left = 0;
  guint64 bytes = 0;
  for (guint i = 0; i < self->plans->len; i++) {
    const Plan *plan = self->plans->pdata[i];
    const gboolean has_gone = plan->goes && plan->action != NULL;
    n_goes += has_gone;
    n_left += g_strcmp0 (plan->action, "left") == 0;
    n_used += g_strcmp0 (plan->action, "left") == 0 && g_strcmp0 (plan->why, IN_USE) == 0;
    bytes += has_gone ? (guint64)plan->listed->bytes : 0;
  }
  print_plans (self);
  g_autofree char *reservation = muster_format_size (bytes);
  if (n_goes == 0 && n_left > 0)
    muster_cli_say (stdout, "removed none of %u checkpoints in %s\n", self->plans->len,
                    self->directory);
  else if (n_goes == 0)
    muster_cli_say (stdout, "nothing to remove: %u checkpoint%s in %s\n", self->plans->len,
                    self->plans->len == 1 ? "" : "s", self->directory);
  else
    muster_cli_say (stdout, "%s %u of %u checkpoints%s%s, %s %s\n",
                    self->dry_run ? "would remove" : "removed", n_goes, self->plans->len,
                    self->is_one ? "" : " in ", self->is_one ? "" : self->directory,
                    self->dry_run ? "freeing" : "freed", reservation);
  if (n_used > 0)
    muster_cli_say (stdout, "not removed, in use: %u checkpoint%s; prune again later\n", n_used,
                    n_used == 1 ? "" : "s");
  if (n_left > n_used)
    muster_cli_say (stdout, "removal failed: %u checkpoint%s\n", n_left - n_used,
                    n_left - n_used == 1 ? "" : "s");
}

static void
print (const Prune *self)
{
  for (guint i = 0; self->json && i < self->plans->len; i++) {
    const Plan *plan = self->plans->pdata[i];
    if (!self->is_one)
      plan->listed->directory = g_strdup (self->directory);
    muster_listed_json (plan->listed, "action", plan->action);
  }
  if (!self->json)
    print_text (self);
}

/* What savers that died have sent to an object store in part. */
static void
abandon_parts (const Prune *self)
{
  g_autoptr (GError) error = NULL;
  const gint64 before_us = muster_clock_wall_us (muster_system_clock ()) - ABANDONED_US;
  if (!muster_storage_sweep (muster_cli_storage (), self->directory, before_us, &error))
    muster_cli_say (stderr, "muster: parts of unfinished uploads in %s stay: %s\n", self->directory,
                    error->message);
}

static gboolean
prune (Prune *self, GError **error)
{
  g_autoptr (MusterDirectoryLock) lock = NULL;
  if (!self->dry_run) {
    lock = muster_directory_lock (muster_cli_storage (), self->directory,
                                  muster_cli_lock_deadline (), NULL, NULL, error);
    if (lock == NULL)
      return FALSE;
  }
  self->record =
      self->dry_run
          ? muster_checkpoint_record_read (muster_cli_storage (), self->directory, error)
          : muster_checkpoint_record_read_to_write (muster_cli_storage (), self->directory, error);
  if (self->record == NULL || !list (self, error))
    return FALSE;
  decide (self);
  if (self->dry_run)
    return TRUE;
  spare_those_in_use (self);
  if (!remove_all (self, error))
    return FALSE;
  abandon_parts (self);
  return TRUE;
}

/* In a store without locks a saver may be faster; then it is decided anew. */
static gboolean
prune_and_print (const Prune *rules, const char *directory, GError **error)
{
  const gint64 deadline_us = muster_cli_lock_deadline ();
  for (guint n_tries = 0;;) {
    g_auto (Prune) self = *rules;
    GError *why = NULL;
    self.directory = directory;
    const gboolean is_well = prune (&self, &why);
    if (!is_well && muster_directory_try_again (&n_tries, deadline_us, NULL, NULL, why, error))
      continue;
    if (self.plans != NULL)
      print (&self);
    return is_well;
  }
}

/* Goes through them all; the first failure counts. */
static gboolean
prune_all (const Prune *rules, char **directories, GError **error)
{
  g_autoptr (GError) first = NULL;
  for (char **directory = directories; *directory != NULL; directory++) {
    g_autoptr (GError) failure = NULL;
    if (prune_and_print (rules, *directory, &failure))
      continue;
    if (first == NULL)
      first = g_steal_pointer (&failure);
    else
      muster_cli_say (stderr, "muster: %s\n", failure->message);
  }
  if (first == NULL)
    return TRUE;
  g_propagate_error (error, g_steal_pointer (&first));
  return FALSE;
}

/* The options as given. */
typedef struct {
  int keep;
  double hours;
  int best;
  gint64 steps;
  char *metric; /* (owned) (nullable) */
} Given;

static void
given_clear (Given *self)
{
  g_free (self->metric);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Given, given_clear)

/* An option that isn't given leaves the directory's own rule; 0 turns it off. */
static gboolean
take_rules (const Given *given, MusterKeepRules *rules, GError **error)
{
  const char *wrong = NULL;
  if (given->keep < 1)
    wrong = "--keep=N must be 1 or more";
  else if (!(given->hours >= 0) || given->hours > 1e6)
    wrong = "--keep=N must be 1 or more, and --keep-every=HOURS 0 or more";
  else if (given->steps < -1 || given->best < -1)
    wrong = "--keep-best=N and --keep-every-steps=N must be 0 or more";
  else if (given->best > 0 && given->metric == NULL)
    wrong = "--keep-best=N needs --metric=NAME:max or NAME:min";
  if (wrong != NULL)
    return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "checkpoint prune: %s", wrong);
  rules->newest = given->keep;
  rules->every_s = given->hours * 3600;
  rules->by_last_kept = TRUE;
  rules->every_steps = given->steps == 0 ? -1 : MAX (given->steps, 0);
  rules->best = given->best == 0 ? -1 : MAX (given->best, 0);
  return given->metric == NULL || muster_keep_rules_parse_metric (rules, given->metric, error);
}

int
muster_cli_checkpoint_prune (int argc, char **argv)
{
  Prune self = {0};
  g_auto (Given) given = {.best = -1, .steps = -1};
  g_auto (MusterKeepRules) rules = {0};
  g_auto (MusterCliOptions) options = {0};
  g_auto (GStrv) words = NULL;
  g_autoptr (GError) error = NULL;
  int code;
  const GOptionEntry entries[] = {
      {"keep", 0, 0, G_OPTION_ARG_INT, &given.keep,
       "number of newest checkpoints to keep (required)", "N"},
      {"keep-every", 0, 0, G_OPTION_ARG_DOUBLE, &given.hours,
       "of older checkpoints, keep one per period of this many hours (default: none)", "HOURS"},
      {"keep-every-steps", 0, 0, G_OPTION_ARG_INT64, &given.steps,
       "of older checkpoints, keep the first at or after each multiple of N steps (0: none; "
       "default: what the last job in the directory used)",
       "N"},
      {"keep-best", 0, 0, G_OPTION_ARG_INT, &given.best,
       "number of checkpoints with the best --metric to keep (0: none; default: what that job "
       "used)",
       "N"},
      {"metric", 0, 0, G_OPTION_ARG_STRING, &given.metric,
       "metric of --keep-best, and whether its max or min is best (default: what that job used)",
       "NAME:max|min"},
      {"dry-run", 0, 0, G_OPTION_ARG_NONE, &self.dry_run, "only print what would be removed", NULL},
      {NULL}};
  if (!muster_cli_checkpoint_parse (argc, argv, "DIR… --keep=N", summary, entries, 1, G_MAXINT,
                                    &options, &words, &code))
    return code;
  if (!take_rules (&given, &rules, &error))
    return muster_cli_fail (error);
  self.is_one = words[1] == NULL;
  self.json = options.json;
  self.rules = rules; /* borrowed */
  return prune_all (&self, words, &error) ? MUSTER_EXIT_DONE : muster_cli_fail (error);
}
