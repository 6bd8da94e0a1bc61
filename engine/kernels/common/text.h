// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/budget_private.h"
#include "engine/kernels/common/dispatch.h"

G_BEGIN_DECLS

/* MusterText is a growing buffer within a budget. Once an append exceeds it, that and all later
 * ones do nothing, and muster_text_check () fails. So a kernel appends freely, checks `failed` in
 * long loops, and checks for errors once at the end. */
typedef struct {
  MusterBudget *budget; /* (not owned) */
  char *data;           /* (owned) (nullable) aligned like g_malloc ()'s */
  gsize size;           /* may be reduced */
  gsize capacity;
  gboolean failed;
  GError *error; /* (owned) (nullable) the cause, until muster_text_check () */
} MusterText;

#define MUSTER_TEXT_INIT(k)                                                                        \
  {                                                                                                \
    .budget = muster_kernel_budget (k)                                                             \
  }

void muster_text_clear (MusterText *self);
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC (MusterText, muster_text_clear)

/* FALSE with RESOURCE_EXHAUSTED if an append failed. */
gboolean muster_text_check (MusterText *self, GError **error);

/* Increases size by n and returns the new bytes, to be written; NULL on failure. */
char *muster_text_extend (MusterText *self, gsize n);

void muster_text_append (MusterText *self, const void *data, gsize size);
void muster_text_append_string (MusterText *self, MusterString string);
void muster_text_put (MusterText *self, const char *text); /* NUL-terminated */
void muster_text_put_n (MusterText *self, char c, gsize n);

static inline void
muster_text_put_c (MusterText *self, char c)
{
  if (G_LIKELY (self->size < self->capacity && !self->failed))
    self->data[self->size++] = c;
  else
    muster_text_append (self, &c, 1);
}

/* Appends a string's bytes as valid UTF-8, like g_utf8_make_valid (), converted piece by piece by
 * change (g_utf8_strup () for example; transfer full) unless that is NULL. */
void muster_text_append_valid (MusterText *self, MusterString string,
                               char *(*change) (const char *text, gssize size));

/* Appends a protobuf field's tag and length; the caller appends size bytes. */
void muster_text_put_head (MusterText *self, guint32 number, gsize size);
gsize muster_text_head_size (guint32 number, gsize size);

/* Sets output i, a scalar, to the text. */
gboolean muster_text_end (MusterText *self, MusterKernel *k, int i, GError **error);

/* Copies a string to a C string, (transfer full); NULL with an error. */
char *muster_kernel_copy_string (MusterKernel *k, MusterString string, GError **error);
/* The same for a path or a tensor's name: RESOURCE_EXHAUSTED if it is too long for one. */
char *muster_kernel_copy_name (MusterKernel *k, MusterString string, GError **error);
/* FALSE with UNIMPLEMENTED, as TensorFlow has it, if the master has no store for the path's scheme.
 */
gboolean muster_kernel_check_path (MusterKernel *k, const char *path, GError **error);

G_END_DECLS
