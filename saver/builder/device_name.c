// SPDX-License-Identifier: Apache-2.0
#include "saver/builder/device_name_private.h"

#include <string.h>

typedef struct {
  char *job, *replica, *task; /* (owned) (nullable) */
  char *type, *index;         /* (owned) (nullable) */
} Parts;

static void
parts_clear (Parts *self)
{
  g_free (self->job);
  g_free (self->replica);
  g_free (self->task);
  g_free (self->type);
  g_free (self->index);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (Parts, parts_clear)

static void
take (char **place, const char *text)
{
  g_free (*place);
  *place = g_strdup (text);
}

/* "job:ps", "device:CPU:0", "cpu:0" */
static gboolean
take_part (Parts *self, const char *part)
{
  g_auto (GStrv) words = g_strsplit (part, ":", 4);
  guint n = g_strv_length (words);
  gboolean is_short = n == 2 && (g_ascii_strcasecmp (words[0], "cpu") == 0 ||
                                 g_ascii_strcasecmp (words[0], "gpu") == 0);

  if (n == 2 && strcmp (words[0], "job") == 0)
    take (&self->job, words[1]);
  else if (n == 2 && strcmp (words[0], "replica") == 0)
    take (&self->replica, words[1]);
  else if (n == 2 && strcmp (words[0], "task") == 0)
    take (&self->task, words[1]);
  else if (is_short || (n == 3 && strcmp (words[0], "device") == 0)) {
    g_free (self->type);
    self->type = g_ascii_strup (words[n - 2], -1);
    take (&self->index, words[n - 1]);
  } else
    return n == 0;
  return TRUE;
}

static gboolean
parse (Parts *self, const char *device)
{
  g_auto (GStrv) parts = g_strsplit (device, "/", 0);

  for (char **part = parts; *part; part++)
    if (!take_part (self, *part))
      return FALSE;
  return TRUE;
}

static void
print_part (GString *out, const char *name, const char *value)
{
  if (value != NULL)
    g_string_append_printf (out, "/%s:%s", name, value);
}

static char *
print (const Parts *self)
{
  GString *out = g_string_new (NULL);

  print_part (out, "job", self->job);
  print_part (out, "replica", self->replica);
  print_part (out, "task", self->task);
  if (self->type != NULL)
    g_string_append_printf (out, "/device:%s:%s", self->type, self->index);
  return g_string_free (out, FALSE);
}

char *
muster_device_canonical (const char *device)
{
  g_auto (Parts) parts = {0};
  return parse (&parts, device) ? print (&parts) : g_strdup (device);
}

char *
muster_device_cpu (const char *device)
{
  g_auto (Parts) parts = {0};

  if (!parse (&parts, device))
    return g_strdup (device);
  take (&parts.type, "CPU");
  take (&parts.index, "0");
  return print (&parts);
}

char *
muster_device_task (const char *device)
{
  g_auto (Parts) parts = {0};

  if (!parse (&parts, device) || parts.job == NULL)
    return g_strdup ("");
  return g_strdup_printf ("%s:%s", parts.job, parts.task != NULL ? parts.task : "0");
}
