// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <glib.h>
#include <stdio.h>

G_BEGIN_DECLS

/* MusterTable is rows of cells, each column as wide as what is in it. Where a terminal is narrower,
 * the last column goes on below itself; where that leaves it too little, the first cell has a line
 * of its own, whole, and the others stand below it. Cells are made plain (cli/output/sanitise.h).
 * One thread at a time. */

typedef struct _MusterTable MusterTable;

MusterTable *muster_table_new (guint n_columns);
void muster_table_free (MusterTable *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC (MusterTable, muster_table_free)

/* One cell after another, NULL at the end; those that are missing are empty. */
void muster_table_add (MusterTable *self, ...) G_GNUC_NULL_TERMINATED;
/* An ANSI code (static) for the first character of the last row. */
void muster_table_colour (MusterTable *self, const char *colour);

/* columns 0: as wide as it is. (transfer full) */
char *muster_table_draw (const MusterTable *self, guint columns);
/* As wide as the terminal that to is, if it is one. */
void muster_table_print (const MusterTable *self, FILE *to);

G_END_DECLS
