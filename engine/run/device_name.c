// SPDX-License-Identifier: Apache-2.0
#include "engine/run/device_name.h"

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

/* "*", or a letter and then letters, digits and underscores, of which as many as fit are kept. */
static gboolean
read_word (const char **at, char *word, gsize size)
{
  word[0] = '\0';
  if (skip (at, "*"))
    return TRUE;
  const char *start = *at;
  if (!g_ascii_isalpha (*start))
    return FALSE;
  while (g_ascii_isalnum (**at) || **at == '_')
    (*at)++;
  g_strlcpy (word, start, MIN (size, (gsize)(*at - start) + 1));
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
  char job[2];
  int number;
  if (skip (at, "/job:"))
    return read_word (at, job, sizeof job);
  if (skip (at, "/replica:") || skip (at, "/task:"))
    return read_number (at, &number);
  if (skip (at, "/device:"))
    return read_word (at, name->type, sizeof name->type) &&
           (!skip (at, ":") || read_number (at, &name->id));
  return read_legacy (at, name);
}

gboolean
muster_device_name_parse (const char *text, MusterDeviceName *name)
{
  *name = (MusterDeviceName){.id = -1};
  if (strcmp (text, "/") == 0)
    return TRUE;
  while (*text != '\0')
    if (!read_part (&text, name))
      return FALSE;
  return TRUE;
}
