// SPDX-License-Identifier: Apache-2.0
#include "master/step_check_private.h"

#include "base/error.h"

#include <string.h>

/* i is the index of the element that is NULL; below 0: the array is. */
static gboolean
refuse_step (const char *function, const char *array, gssize i, GError **error)
{
  return i < 0 ? muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT, "%s: the step's '%s' is NULL",
                              function, array)
               : muster_fail (error, MUSTER_ERROR_INVALID_ARGUMENT,
                              "%s: the step's '%s[%" G_GSSIZE_FORMAT "]' is NULL", function, array,
                              i);
}

static gboolean
check_names (const char *function, const char *array, const char *const *names, gsize n,
             GError **error)
{
  if (G_UNLIKELY (n > 0 && names == NULL))
    return refuse_step (function, array, -1, error);
  for (gsize i = 0; i < n; i++)
    if (G_UNLIKELY (names[i] == NULL))
      return refuse_step (function, array, (gssize)i, error);
  return TRUE;
}

gboolean
muster_step_check (const char *function, const MusterStep *step, gboolean with_values,
                   GError **error)
{
  if (G_UNLIKELY (step->n_feeds > 0 && step->feeds == NULL))
    return refuse_step (function, "feeds", -1, error);
  for (gsize i = 0; i < step->n_feeds; i++)
    if (G_UNLIKELY (step->feeds[i].name == NULL || (with_values && step->feeds[i].tensor == NULL)))
      return refuse_step (function, "feeds", (gssize)i, error);
  return check_names (function, "fetches", step->fetches, step->n_fetches, error) &&
         check_names (function, "targets", step->targets, step->n_targets, error);
}

gboolean
muster_step_lacks_value (const GError *failure)
{
  return muster_error_is (failure, MUSTER_ERROR_FAILED_PRECONDITION) &&
         strstr (failure->message, "uninitialized") != NULL;
}
