// SPDX-License-Identifier: Apache-2.0
#include "ready/reasons_private.h"

#include "base/names.h"

#include <string.h>

#define OWNERS_SHOWN       6 /* the longest lists first; the rest as "…" */
#define OWNERS_WITH_NAMES  2
#define NAMES_SHOWN        3
#define NAMES_SHOWN_OF_ONE 2 /* where there are several owners */

/* The missing variables of one task. */
typedef struct {
  char *owner; /* (owned) "" for none */
  guint n;
  const char *first[NAMES_SHOWN]; /* borrowed */
} Group;

static void
group_free (gpointer data)
{
  Group *self = data;
  g_free (self->owner);
  g_free (self);
}

static char *
part_of (const char *device, const char *key)
{
  const char *at = strstr (device, key);
  if (at == NULL)
    return NULL;
  at += strlen (key);
  return g_strndup (at, strcspn (at, "/"));
}

char *
muster_reason_owner_of_device (const char *device)
{
  g_autofree char *job = device == NULL ? NULL : part_of (device, "/job:");
  if (job == NULL || *job == '\0')
    return NULL;
  g_autofree char *task = part_of (device, "/task:");
  return task != NULL && *task != '\0' ? g_strdup_printf ("%s:%s", job, task)
                                       : g_steal_pointer (&job);
}

/* The devices of the model's variables by their names; NULL where none has one. */
static GHashTable *
devices_of (const MusterSituation *situation)
{
  GHashTable *devices = NULL;
  for (gsize i = 0; i < situation->n_variables; i++) {
    const MusterVariableInfo *info = &situation->variables[i];
    if (info->device == NULL || *info->device == '\0')
      continue;
    if (devices == NULL)
      devices = g_hash_table_new (g_str_hash, g_str_equal);
    g_hash_table_insert (devices, (gpointer)info->name, (gpointer)info->device);
  }
  return devices;
}

/* A ready op may name the tensor instead of the variable: "v:0". */
static const char *
device_of (GHashTable *devices, const char *name)
{
  const char *device = g_hash_table_lookup (devices, name);
  const char *colon = device == NULL ? strrchr (name, ':') : NULL;
  if (colon == NULL)
    return device;
  g_autofree char *op = g_strndup (name, (gsize)(colon - name));
  return g_hash_table_lookup (devices, op);
}

static int
by_size (gconstpointer a, gconstpointer b)
{
  const Group *x = *(Group *const *)a, *y = *(Group *const *)b;
  return x->n != y->n ? (x->n < y->n ? 1 : -1) : strcmp (x->owner, y->owner);
}

/* (element-type Group) */
static GPtrArray *
group (const MusterSituation *situation, char **names)
{
  GPtrArray *groups = g_ptr_array_new_with_free_func (group_free);
  g_autoptr (GHashTable) by_owner = g_hash_table_new (g_str_hash, g_str_equal);
  g_autoptr (GHashTable) devices = devices_of (situation);
  for (char **name = names; *name != NULL; name++) {
    const char *device = devices == NULL ? NULL : device_of (devices, *name);
    g_autofree char *owner = muster_reason_owner_of_device (device);
    Group *it = g_hash_table_lookup (by_owner, owner != NULL ? owner : "");
    if (it == NULL) {
      it = g_new0 (Group, 1);
      it->owner = owner != NULL ? g_steal_pointer (&owner) : g_strdup ("");
      g_hash_table_insert (by_owner, it->owner, it);
      g_ptr_array_add (groups, it);
    }
    if (it->n < NAMES_SHOWN)
      it->first[it->n] = *name;
    it->n++;
  }
  g_ptr_array_sort (groups, by_size);
  return groups;
}

static void
append_names (GString *text, const Group *it, guint at_most)
{
  for (guint i = 0; i < MIN (it->n, at_most); i++)
    g_string_append_printf (text, "%s%s", i == 0 ? "" : ", ", it->first[i]);
  if (it->n > at_most)
    g_string_append (text, ", …");
}

/* "missing 92: ps:0 60 (dense_1/kernel, dense_1/bias, …), ps:1 32 (…)" */
static char *
describe (GPtrArray *groups, guint n_missing)
{
  GString *text = g_string_new (NULL);
  g_string_append_printf (text, "missing %u: ", n_missing);
  const Group *largest = g_ptr_array_index (groups, 0);
  if (groups->len == 1 && *largest->owner == '\0') {
    append_names (text, largest, NAMES_SHOWN);
    return g_string_free (text, FALSE);
  }
  guint names_shown = groups->len == 1 ? NAMES_SHOWN : NAMES_SHOWN_OF_ONE;
  for (guint i = 0; i < MIN (groups->len, OWNERS_SHOWN); i++) {
    const Group *it = g_ptr_array_index (groups, i);
    g_string_append_printf (text, "%s%s %u", i == 0 ? "" : ", ",
                            *it->owner != '\0' ? it->owner : "on no task", it->n);
    if (i >= OWNERS_WITH_NAMES)
      continue;
    g_string_append (text, " (");
    append_names (text, it, names_shown);
    g_string_append_c (text, ')');
  }
  if (groups->len > OWNERS_SHOWN)
    g_string_append (text, ", …");
  return g_string_free (text, FALSE);
}

static void
tell_missing (MusterReason *self, const MusterSituation *situation)
{
  char **names = situation->turn->missing;
  g_autoptr (GPtrArray) groups = group (situation, names);
  const Group *largest = g_ptr_array_index (groups, 0);
  self->state = "missing";
  self->n_missing = g_strv_length (names);
  /* a ready op of the program's own may look at more than the model's variables */
  if (self->n_total < self->n_missing)
    self->n_total = 0;
  self->names = muster_names_pack (names, self->n_missing);
  self->text = describe (groups, self->n_missing);
  if (groups->len == 1 && *largest->owner != '\0')
    self->owner = g_strdup (largest->owner);
}

MusterReason *
muster_reason_for_variables (const MusterSituation *situation)
{
  const MusterTurn *turn = situation->turn;
  MusterReason *self = g_new0 (MusterReason, 1);
  self->component = "variables";
  self->n_total = (guint)MIN (situation->n_variables, G_MAXUINT);
  if (turn != NULL && !turn->is_ready && turn->missing != NULL && turn->missing[0] != NULL) {
    tell_missing (self, situation);
    return self;
  }
  if (turn != NULL && turn->is_ready) {
    self->state = "initialised";
    self->is_well = TRUE;
    self->text = self->n_total > 0 ? g_strdup_printf ("all %u initialised", self->n_total)
                                   : g_strdup ("initialised");
    return self;
  }
  const char *why = turn == NULL                  ? NULL
                    : turn->why_not_ready != NULL ? turn->why_not_ready
                                                  : turn->why_gate;
  self->state = "unknown";
  self->text = g_strdup (why != NULL ? why : "not known yet");
  return self;
}
