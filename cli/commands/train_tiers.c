// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/train_tiers.h"

#include "cli/common/cli.h"

#include <string.h>

static gboolean
refuse (const char *word, const char *what, GError **error)
{
  return muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                      "invalid --fast-dir '%s': %s (use DIR[,every=STEPS|secs=TIME][,keep=N])",
                      word, what);
}

static gboolean
parse_rule (const char *rule, const char *word, MusterTier *tier, GError **error)
{
  const char *value = strchr (rule, '=');
  gint64 keep;
  value = value != NULL ? value + 1 : "";
  if (g_str_has_prefix (rule, "every="))
    return g_ascii_string_to_signed (value, 10, 1, G_MAXINT64, &tier->save_steps, NULL) ||
           refuse (word, "'every' isn't a number of steps, 1 or more", error);
  if (g_str_has_prefix (rule, "secs="))
    return (muster_cli_duration (value, &tier->save_us, NULL) && tier->save_us > 0 &&
            tier->save_us != MUSTER_WAIT_FOREVER) ||
           refuse (word, "'secs' isn't a time above 0", error);
  if (!g_str_has_prefix (rule, "keep="))
    return refuse (word, "unknown setting", error);
  if (!g_ascii_string_to_signed (value, 10, -1, G_MAXINT, &keep, NULL) || keep == 0)
    return refuse (word, "'keep' isn't a number of checkpoints, 1 or more, or -1 for all", error);
  tier->max_to_keep = (int)keep;
  return TRUE;
}

static gboolean
parse_tier (const char *word, MusterTier *tier, GError **error)
{
  g_auto (GStrv) parts = g_strsplit (word, ",", -1);
  if (parts[0] == NULL || !muster_cli_check_directory ("--fast-dir", parts[0], error))
    return parts[0] != NULL ? FALSE : refuse (word, "no directory", error);
  for (char **rule = parts + 1; *rule != NULL; rule++)
    if (!parse_rule (*rule, word, tier, error))
      return FALSE;
  if (tier->save_steps > 0 && tier->save_us > 0)
    return refuse (word, "'every' and 'secs' can't be combined", error);
  tier->directory = g_strdup (parts[0]);
  return TRUE;
}

gboolean
muster_train_tiers_parse (char **words, MusterTier **tiers, gsize *n, GError **error)
{
  const gsize n_words = words != NULL ? g_strv_length (words) : 0;
  MusterTier *parsed = g_new0 (MusterTier, MAX (n_words, 1));
  for (gsize i = 0; i < n_words; i++)
    if (!parse_tier (words[i], &parsed[i], error)) {
      muster_train_tiers_free (parsed, i);
      return FALSE;
    }
  *tiers = parsed;
  *n = n_words;
  return TRUE;
}

void
muster_train_tiers_free (MusterTier *tiers, gsize n)
{
  for (gsize i = 0; i < n; i++)
    g_free ((char *)tiers[i].directory);
  g_free (tiers);
}
