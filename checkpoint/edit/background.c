// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/edit/background.h"

#include "base/background.h"

#define TEXT(X, name)  X (KEPT, const char *, name, g_strdup, MUSTER_FREE_STRING)
#define TEXTS(X, name) X (KEPT, const char *const *, name, MUSTER_KEEP_STRINGS, MUSTER_FREE_STRINGS)
#define REST(X)                                                                                    \
  X (KEPT, const MusterEditOptions *, options, muster_edit_options_copy, FREE_OPTIONS)             \
  X (OUT, MusterEditReport, report, MUSTER_PLAIN) X (VALUE, gint64, deadline_us)
#define FREE_OPTIONS(options) muster_edit_options_free ((MusterEditOptions *)(options))

static gboolean
copy (const char *from, const char *to, const MusterEditOptions *options, MusterEditReport *report,
      gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_checkpoint_copy (from, to, options, report, NULL, NULL, deadline_us, cancellable,
                                 error);
}

#define COPY(X) TEXT (X, from) TEXT (X, to) REST (X)
MUSTER_ASYNC (muster_checkpoint_copy, copy, "muster-copy", gboolean, MUSTER_PLAIN, COPY)

static gboolean
merge (const char *const *from, const char *to, const MusterEditOptions *options,
       MusterEditReport *report, gint64 deadline_us, GCancellable *cancellable, GError **error)
{
  return muster_checkpoint_merge (from, to, options, report, NULL, NULL, deadline_us, cancellable,
                                  error);
}

#define MERGE(X) TEXTS (X, from) TEXT (X, to) REST (X)
MUSTER_ASYNC (muster_checkpoint_merge, merge, "muster-merge", gboolean, MUSTER_PLAIN, MERGE)

static gboolean
extract (const char *from, const char *const *patterns, const char *to,
         const MusterEditOptions *options, MusterEditReport *report, gint64 deadline_us,
         GCancellable *cancellable, GError **error)
{
  return muster_checkpoint_extract (from, patterns, to, options, report, NULL, NULL, deadline_us,
                                    cancellable, error);
}

#define EXTRACT(X) TEXT (X, from) TEXTS (X, patterns) TEXT (X, to) REST (X)
MUSTER_ASYNC (muster_checkpoint_extract, extract, "muster-extract", gboolean, MUSTER_PLAIN, EXTRACT)

static gboolean
extract_npy (const char *from, const char *const *patterns, const char *to,
             const MusterEditOptions *options, MusterEditReport *report, gint64 deadline_us,
             GCancellable *cancellable, GError **error)
{
  return muster_checkpoint_extract_npy (from, patterns, to, options, report, NULL, NULL,
                                        deadline_us, cancellable, error);
}

#define EXTRACT_NPY(X) TEXT (X, from) TEXTS (X, patterns) TEXT (X, to) REST (X)
MUSTER_ASYNC (muster_checkpoint_extract_npy, extract_npy, "muster-npy", gboolean, MUSTER_PLAIN,
              EXTRACT_NPY)

static gboolean
rename_as (const char *from, const char *const *names, const char *to,
           const MusterEditOptions *options, MusterEditReport *report, gint64 deadline_us,
           GCancellable *cancellable, GError **error)
{
  return muster_checkpoint_rename (from, names, to, options, report, NULL, NULL, deadline_us,
                                   cancellable, error);
}

#define RENAME(X) TEXT (X, from) TEXTS (X, names) TEXT (X, to) REST (X)
MUSTER_ASYNC (muster_checkpoint_rename, rename_as, "muster-rename", gboolean, MUSTER_PLAIN, RENAME)
