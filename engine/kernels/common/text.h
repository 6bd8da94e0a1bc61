// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/kernels/common/dispatch.h"

G_BEGIN_DECLS

/* MusterText is bytes that are appended to, as a GString is, within a budget. Once an append is
 * over it, that and all later ones do nothing, and muster_text_check () says so: a kernel appends
 * as it likes, looks at failed where it loops for long, and checks once at the end. */
typedef struct {
  MusterBudget *budget; /* (not owned) */
  char *data;           /* (owned) (nullable) as aligned as g_malloc's */
  gsize size;           /* may be set to less */
  gsize capacity;
  gboolean failed;
  GError *error; /* (owned) (nullable) why, until it has been asked for */
} MusterText;

#define MUSTER_TEXT_INIT(k)                                                                        \
  {                                                                                                \
    .budget = muster_kernel_budget (k)                                                             \
  }

void muster_text_clear (MusterText *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterText, muster_text_clear)

/* FALSE, with RESOURCE_EXHAUSTED, if something wasn't appended. */
gboolean muster_text_check (MusterText *self, GError **error);

/* Makes size larger by n and returns where those begin, to be written; NULL where it fails. */
char *muster_text_extend (MusterText *self, gsize n);

void muster_text_append (MusterText *self, const void *data, gsize size);
void muster_text_append_string (MusterText *self, MusterString string);
void muster_text_put (MusterText *self, const char *text); /* ends with NUL */
void muster_text_put_n (MusterText *self, char c, gsize n);

static inline void
muster_text_put_c (MusterText *self, char c)
{
  if (G_LIKELY (self->size < self->capacity && !self->failed))
    self->data[self->size++] = c;
  else
    muster_text_append (self, &c, 1);
}

/* A string's bytes as valid UTF-8, as g_utf8_make_valid () has them, changed piece by piece where
 * change (g_utf8_strup () and the like; transfer full) isn't NULL. */
typedef char *(*MusterTextChange) (const char *text, gssize size);
void muster_text_append_valid (MusterText *self, MusterString string, MusterTextChange change);

/* A protobuf field: its tag and length; the caller appends so many bytes after it. */
void muster_text_put_head (MusterText *self, guint32 number, gsize size);
gsize muster_text_head_size (guint32 number, gsize size);

/* The text as output i, a scalar. */
gboolean muster_text_end (MusterText *self, MusterKernel *k, int i, GError **error);

/* A string as a C string, (transfer full); NULL with an error. */
char *muster_kernel_copy_string (MusterKernel *k, MusterString string, GError **error);
/* The same for a path or a tensor's name, which is copied further on: RESOURCE_EXHAUSTED for one
 * that nothing can have. */
char *muster_kernel_copy_name (MusterKernel *k, MusterString string, GError **error);

G_END_DECLS
