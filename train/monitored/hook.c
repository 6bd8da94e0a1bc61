// SPDX-License-Identifier: Apache-2.0
/* Calls a hook's functions, and names the hook in their errors. Below: what hooks claim
 * exclusively, and a hook made of one function. */
#include "train/monitored/hook.h"

#include "base/error.h"
#include "base/files/local_path_private.h"
#include "train/monitored/hook_private.h"
#include "train/monitored/run_context_private.h"

G_DEFINE_TYPE (MusterHook, muster_hook, G_TYPE_OBJECT)

static void
muster_hook_class_init (MusterHookClass *klass G_GNUC_UNUSED)
{
}

static void
muster_hook_init (MusterHook *self G_GNUC_UNUSED)
{
}

/* Adds the hook's name to an error, because several hooks may do the same thing. FALSE without
 * an error is reported as the hook's mistake: a function in another language easily returns
 * nothing. */
static gboolean
tell (MusterHook *self, const char *verb, gboolean is_well, GError **error)
{
  if (is_well)
    return TRUE;
  if (error != NULL && *error == NULL)
    muster_fail (error, MUSTER_ERROR_INTERNAL, "%s",
                 "the hook's function failed without an error; it must return TRUE");
  g_prefix_error (error, "%s, %s: ", G_OBJECT_TYPE_NAME (self), verb);
  return FALSE;
}

void
muster_hook_measure (MusterHook *self, MusterGoodputMeter *meter)
{
  MusterHookClass *klass = MUSTER_HOOK_GET_CLASS (self);
  if (klass->measure != NULL)
    klass->measure (self, meter);
}

gboolean
muster_hook_begin (MusterHook *self, MusterScaffold *scaffold, GError **error)
{
  MusterHookClass *klass = MUSTER_HOOK_GET_CLASS (self);
  return klass->begin == NULL || tell (self, "begin", klass->begin (self, scaffold, error), error);
}

gboolean
muster_hook_after_create_session (MusterHook *self, MusterSession *session,
                                  MusterCoordinator *coordinator, gint64 deadline_us,
                                  GCancellable *cancellable, GError **error)
{
  MusterHookClass *klass = MUSTER_HOOK_GET_CLASS (self);
  return klass->after_create_session == NULL ||
         tell (self, "after the session was made",
               klass->after_create_session (self, session, coordinator, deadline_us, cancellable,
                                            error),
               error);
}

gboolean
muster_hook_before_run (MusterHook *self, MusterRunContext *context, GError **error)
{
  MusterHookClass *klass = MUSTER_HOOK_GET_CLASS (self);
  muster_run_context_set_hook (context, G_OBJECT (self));
  return klass->before_run == NULL ||
         tell (self, "before a run", klass->before_run (self, context, error), error);
}

gboolean
muster_hook_after_run (MusterHook *self, MusterRunContext *context, GError **error)
{
  MusterHookClass *klass = MUSTER_HOOK_GET_CLASS (self);
  return klass->after_run == NULL ||
         tell (self, "after a run", klass->after_run (self, context, error), error);
}

gboolean
muster_hook_end (MusterHook *self, MusterSession *session, gint64 deadline_us,
                 GCancellable *cancellable, GError **error)
{
  MusterHookClass *klass = MUSTER_HOOK_GET_CLASS (self);
  return klass->end == NULL ||
         tell (self, "at the end", klass->end (self, session, deadline_us, cancellable, error),
               error);
}

void
muster_hook_on_error (MusterHook *self, const GError *error)
{
  MusterHookClass *klass = MUSTER_HOOK_GET_CLASS (self);
  if (klass->on_error != NULL)
    klass->on_error (self, error);
}

void
muster_hook_session_lost (MusterHook *self)
{
  MusterHookClass *klass = MUSTER_HOOK_GET_CLASS (self);
  if (klass->session_lost != NULL)
    klass->session_lost (self);
}

/* --- what hooks add to a run --- */

char *
muster_hook_claim_of_feed (const char *tensor)
{
  g_return_val_if_fail (tensor != NULL, NULL);
  return g_strdup_printf (strchr (tensor, ':') != NULL ? "feeds %s" : "feeds %s:0", tensor);
}

char *
muster_hook_claim_of_directory (const char *does, const char *directory)
{
  g_return_val_if_fail (does != NULL && directory != NULL, NULL);

  const char *local = muster_local_path (directory);
  g_autofree char *path =
      strstr (local, "://") == NULL ? g_canonicalize_filename (local, NULL) : g_strdup (directory);
  return g_strdup_printf ("%s '%s'", does, path);
}

static gboolean
claim (GHashTable *claimed, MusterHook *hook, char **claims, GError **error)
{
  for (char **what = claims; what != NULL && *what != NULL; what++) {
    MusterHook *other = g_hash_table_lookup (claimed, *what);
    if (other != NULL) {
      return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                          "conflicting hooks: both %s and %s are one that %s; remove one",
                          G_OBJECT_TYPE_NAME (other), G_OBJECT_TYPE_NAME (hook), *what);
    }
    g_hash_table_insert (claimed, g_strdup (*what), hook);
  }
  return TRUE;
}

gboolean
muster_hooks_check (GPtrArray *hooks, GError **error)
{
  g_autoptr (GHashTable) claimed = g_hash_table_new_full (g_str_hash, g_str_equal, g_free, NULL);
  for (guint i = 0; i < hooks->len; i++) {
    MusterHookClass *klass = MUSTER_HOOK_GET_CLASS (hooks->pdata[i]);
    g_auto (GStrv) claims = klass->claims != NULL ? klass->claims (hooks->pdata[i]) : NULL;
    if (!claim (claimed, hooks->pdata[i], claims, error))
      return FALSE;
  }
  return TRUE;
}

/* --- hooks with one function --- */

#define MUSTER_TYPE_STEP_HOOK (muster_step_hook_get_type ())
G_DECLARE_FINAL_TYPE (MusterStepHook, muster_step_hook, MUSTER, STEP_HOOK, MusterHook)

struct _MusterStepHook {
  MusterHook parent;
  char *tensor; /* (owned) (nullable) */
  guint fetched;
  MusterHookStep after_step;
  gpointer user_data;
  GDestroyNotify destroy; /* (nullable) */
};

G_DEFINE_FINAL_TYPE (MusterStepHook, muster_step_hook, MUSTER_TYPE_HOOK)

static gboolean
step_hook_before_run (MusterHook *hook, MusterRunContext *context, GError **error G_GNUC_UNUSED)
{
  MusterStepHook *self = MUSTER_STEP_HOOK (hook);
  if (self->tensor != NULL)
    self->fetched = muster_run_context_fetch (context, self->tensor);
  return TRUE;
}

static gboolean
step_hook_after_run (MusterHook *hook, MusterRunContext *context, GError **error)
{
  MusterStepHook *self = MUSTER_STEP_HOOK (hook);
  g_autoptr (GError) failure = NULL;
  MusterTensor *value =
      self->tensor != NULL ? muster_run_context_value (context, self->fetched) : NULL;

  if (self->after_step (value, muster_run_context_global_step (context), self->user_data, &failure))
    return TRUE;
  if (failure == NULL) {
    muster_run_context_request_stop (context);
    return TRUE;
  }
  g_propagate_error (error, g_steal_pointer (&failure));
  return FALSE;
}

static void
step_hook_finalize (GObject *object)
{
  MusterStepHook *self = MUSTER_STEP_HOOK (object);
  if (self->destroy != NULL)
    self->destroy (self->user_data);
  g_free (self->tensor);
  G_OBJECT_CLASS (muster_step_hook_parent_class)->finalize (object);
}

static void
muster_step_hook_class_init (MusterStepHookClass *klass)
{
  G_OBJECT_CLASS (klass)->finalize = step_hook_finalize;
  MUSTER_HOOK_CLASS (klass)->before_run = step_hook_before_run;
  MUSTER_HOOK_CLASS (klass)->after_run = step_hook_after_run;
}

static void
muster_step_hook_init (MusterStepHook *self G_GNUC_UNUSED)
{
}

MusterHook *
muster_hook_new_for_step (const char *tensor, MusterHookStep after_step, gpointer user_data,
                          GDestroyNotify destroy)
{
  g_return_val_if_fail (after_step != NULL, NULL);

  MusterStepHook *self = g_object_new (MUSTER_TYPE_STEP_HOOK, NULL);
  self->tensor = g_strdup (tensor);
  self->after_step = after_step;
  self->user_data = user_data;
  self->destroy = destroy;
  return MUSTER_HOOK (self);
}
