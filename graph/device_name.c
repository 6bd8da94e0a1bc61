// SPDX-License-Identifier: Apache-2.0
/* Parses device names in TensorFlow's forms ("/job:ps/task:0/device:CPU:0", "/cpu:0"), and
 * prints them in the canonical one. */
#include "graph/device_name_private.h"

#include <string.h>

#define MAX_DIGITS 9

/* Moves on behind a prefix; FALSE where it isn't there. */
static gboolean
skip (const char **at, const char *prefix)
{
  if (!g_str_has_prefix (*at, prefix))
    return FALSE;
  *at += strlen (prefix);
  return TRUE;
}

/* "*" or a number; -1 for "*". */
static gboolean
read_number (const char **at, int *number)
{
  *number = -1;
  if (skip (at, "*"))
    return TRUE;
  const char *digits = *at;
  int value = 0;
  for (; g_ascii_isdigit (**at) && *at - digits < MAX_DIGITS; (*at)++)
    value = 10 * value + (**at - '0');
  *number = value;
  return *at > digits;
}

/* "*", or a letter and then letters, digits and underscores; NULL for "*". */
static gboolean
read_word (const char **at, const char **word, gsize *size)
{
  *word = NULL;
  *size = 0;
  if (skip (at, "*"))
    return TRUE;
  const char *start = *at;
  if (!g_ascii_isalpha (*start))
    return FALSE;
  while (g_ascii_isalnum (**at) || **at == '_')
    (*at)++;
  *word = start;
  *size = (gsize)(*at - start);
  return TRUE;
}

/* Keeps as much of a type as fits. */
static gboolean
read_type (const char **at, MusterDeviceName *name)
{
  const char *type;
  gsize size;
  if (!read_word (at, &type, &size))
    return FALSE;
  g_strlcpy (name->type, type != NULL ? type : "", MIN (sizeof name->type, size + 1));
  return TRUE;
}

/* "/cpu:0" and the like, from before there was "/device:". */
static gboolean
read_legacy (const char **at, MusterDeviceName *name)
{
  const gboolean is_cpu = skip (at, "/cpu:") || skip (at, "/CPU:");
  if (!is_cpu && !skip (at, "/gpu:") && !skip (at, "/GPU:"))
    return FALSE;
  g_strlcpy (name->type, is_cpu ? "CPU" : "GPU", sizeof name->type);
  return read_number (at, &name->id);
}

static gboolean
read_part (const char **at, MusterDeviceName *name)
{
  if (skip (at, "/job:"))
    return read_word (at, &name->job, &name->job_size);
  if (skip (at, "/replica:"))
    return read_number (at, &name->replica);
  if (skip (at, "/task:"))
    return read_number (at, &name->task);
  if (skip (at, "/device:"))
    return read_type (at, name) && (!skip (at, ":") || read_number (at, &name->id));
  return read_legacy (at, name);
}

gboolean
muster_device_name_parse (const char *text, MusterDeviceName *name)
{
  *name = (MusterDeviceName){.replica = -1, .task = -1, .id = -1};
  if (strcmp (text, "/") == 0)
    return TRUE;
  while (*text != '\0')
    if (!read_part (&text, name))
      return FALSE;
  return TRUE;
}

static char *
print (const MusterDeviceName *name)
{
  GString *out = g_string_new (NULL);
  g_autofree char *type = g_ascii_strup (name->type, -1);
  if (name->job != NULL)
    g_string_append_printf (out, "/job:%.*s", (int)name->job_size, name->job);
  if (name->replica >= 0)
    g_string_append_printf (out, "/replica:%d", name->replica);
  if (name->task >= 0)
    g_string_append_printf (out, "/task:%d", name->task);
  if (*type != '\0' || name->id >= 0)
    g_string_append_printf (out, "/device:%s:", *type != '\0' ? type : "*");
  if (name->id >= 0)
    g_string_append_printf (out, "%d", name->id);
  else if (*type != '\0')
    g_string_append_c (out, '*');
  return g_string_free (out, FALSE);
}

char *
muster_device_canonical (const char *text)
{
  MusterDeviceName name;
  return muster_device_name_parse (text, &name) ? print (&name) : g_strdup (text);
}

char *
muster_device_cpu (const char *text)
{
  MusterDeviceName name;
  if (!muster_device_name_parse (text, &name))
    return g_strdup (text);
  g_strlcpy (name.type, "CPU", sizeof name.type);
  name.id = 0;
  return print (&name);
}

char *
muster_device_of_any_task (const char *text)
{
  MusterDeviceName name;
  if (!muster_device_name_parse (text, &name))
    return g_strdup (text);
  name.job = NULL;
  name.replica = name.task = -1;
  return print (&name);
}

char *
muster_device_task (const char *text)
{
  MusterDeviceName name;
  if (!muster_device_name_parse (text, &name) || name.job == NULL)
    return NULL;
  g_autofree char *job = g_strndup (name.job, name.job_size);
  return name.task >= 0 ? g_strdup_printf ("%s:%d", job, name.task) : g_steal_pointer (&job);
}
