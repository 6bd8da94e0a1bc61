// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gio/gio.h>

G_BEGIN_DECLS

/* What generate.py writes of each public function, and one call of it. */

#define MISUSE_MOST_PARAMETERS 12

typedef enum {
  MISUSE_NOTHING,
  MISUSE_POINTER,
  MISUSE_BOOLEAN,
  MISUSE_NUMBER,
  MISUSE_STRUCT,
} MisuseKind;

typedef struct {
  const char *name;
  const char *type; /* as in the header, "const char *"; with " []" for an array */
  gboolean is_pointer;
  gboolean is_callback;
  gboolean is_opaque; /* only a function makes one */
  gboolean is_nullable;
  int count; /* the parameter that says how many it has, or -1 */
  gboolean is_unsigned;
} MisuseParameter;

typedef struct _MisuseCall MisuseCall;

typedef struct {
  const char *name;
  const char *header;
  void (*call) (MisuseCall *call);
  MisuseKind kind;
  gboolean has_error;
  guint n_parameters;
  MisuseParameter parameters[MISUSE_MOST_PARAMETERS];
} MisuseFunction;

struct _MisuseCall {
  const MisuseFunction *function;
  gpointer pointers[MISUSE_MOST_PARAMETERS];
  gint64 number;
  gint64 count;           /* of arrays */
  gboolean without_error; /* NULL for the GError */
  /* what came of it */
  gint64 result;
  GError *error;
  gboolean is_answered; /* an …_async () */
  guint n_criticals;
  char *critical; /* the first */
};

/* An object for a parameter of that type, alive until the process ends; NULL where there is no
 * maker. Only in a child process, whose working directory is its own. */
gpointer misuse_make (const char *function, const char *type);

/* TRUE for a type that is known to have no maker. */
gboolean misuse_is_unmade (const char *type);

G_END_DECLS
