// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

/* MusterTable formats rows of cells, each column as wide as its content. If the terminal is
 * narrower, the last column is wrapped; if too little remains for it, the first cell gets its own
 * line, and the others follow below it. Cells are sanitised (cli/output/sanitise.h). One thread at
 * a time. */

typedef struct _MusterTable MusterTable;

MusterTable *muster_table_new (guint n_columns);
void muster_table_free (MusterTable *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterTable, muster_table_free)

/* Adds a row of cells, terminated by NULL; missing ones are empty. */
void muster_table_add (MusterTable *self, ...) G_GNUC_NULL_TERMINATED;
/* Sets the ANSI code (static) for the first character of the last row. */
void muster_table_colour (MusterTable *self, const char *colour);

/* columns 0: no limit. (transfer full) */
char *muster_table_draw (const MusterTable *self, guint columns);
/* Prints with the width of the terminal, if `to` is one. */
void muster_table_print (const MusterTable *self, FILE *to);

G_END_DECLS
