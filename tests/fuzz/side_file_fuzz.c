// SPDX-License-Identifier: Apache-2.0
/* A side file, read, written and read again. Its checksum is put right, so that what lies behind it
 * is met. */
#include "base/crc32c_private.h"
#include "checkpoint/state/checkpoint_record_private.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

/* Names make paths. */
static void
check_names (const MusterCheckpointRecord *record)
{
  for (guint i = 0; i < record->checkpoints->len; i++) {
    const MusterSideCheckpoint *one = record->checkpoints->pdata[i];
    g_assert_true (*one->name != '\0' && strchr (one->name, '/') == NULL);
    g_assert_true (strcmp (one->name, ".") != 0 && strcmp (one->name, "..") != 0);
    g_assert_true (muster_checkpoint_record_find (record, one->name) == one);
  }
}

int
LLVMFuzzerTestOneInput (const guint8 *data, gsize size)
{
  g_autoptr (GError) error = NULL;
  muster_checkpoint_record_free (
      muster_checkpoint_record_parse ((const char *)data, size, NULL)); /* as it is */
  muster_checkpoint_record_free (muster_checkpoint_record_salvage ((const char *)data, size));
  g_autofree char *body = g_strndup ((const char *)data, size);
  g_autofree char *text =
      g_strdup_printf ("# muster %08x\n%s", muster_crc32c_extend (0, body, strlen (body)), body);
  g_autoptr (MusterCheckpointRecord) record =
      muster_checkpoint_record_parse (text, strlen (text), &error);
  g_assert_true ((record != NULL) == (error == NULL));
  if (record == NULL)
    return 0;
  check_names (record);
  g_autofree char *printed = muster_checkpoint_record_print (record);
  g_autoptr (MusterCheckpointRecord) again =
      muster_checkpoint_record_parse (printed, strlen (printed), &error);
  g_assert_no_error (error);
  g_autofree char *reprinted = muster_checkpoint_record_print (again);
  g_assert_cmpstr (reprinted, ==, printed);
  return 0;
}

void
muster_fuzz_seeds (void)
{
  static const char *const seeds[] = {
      "[directory]\nversion=1\nepoch=3\nchief=worker:0\nover=true\nfinal-step=9\n"
      "last-preserved=1600000000.5\nlife=model.ckpt-1\n",
      "[checkpoint 0]\nname=model.ckpt-1\nstep=1\nepoch=3\ntime=1.5\nbytes=7\nverified=true\n"
      "preserved=true\ndoomed=true\ndeaths=2\nbad=why\nstate-file=best\n"
      "files=.index 12 0123abcd;.data-00000-of-00001 40\n",
      "[checkpoint 0]\nname=a%ff b\n[checkpoint 1]\nname=\xc3\xa4\n"};
  for (gsize i = 0; i < G_N_ELEMENTS (seeds); i++)
    muster_fuzz_seed (NULL, seeds[i], strlen (seeds[i]));
}
