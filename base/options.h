// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib-object.h>

G_BEGIN_DECLS

/**
 * muster_options_set:
 * @options: holds a struct of options: zeroed, of a `_new ()`, or a copy
 * @name: a field of the struct, or of a struct in it: "saver.max_to_keep"
 * @value: its value, which is copied. Any number for a number, if it is in the field's range; for
 *   an array of strings a %G_TYPE_STRV; otherwise of the field's type, or `NULL`. A value for an
 *   array of objects or structs is added to it, and `NULL` empties it
 *
 * Sets a field by its name, for other languages. C code assigns to the field.
 *
 * Functions aren't set by it, but by the struct's own methods.
 *
 * Returns: FALSE with INVALID_ARGUMENT for a field that the struct doesn't have, a value of another
 *   type, or one out of range
 */
gboolean muster_options_set (GValue *options, const char *name, const GValue *value,
                             GError **error);

G_END_DECLS
