// SPDX-License-Identifier: Apache-2.0
#include "tests/rpc/certificates.h"

#include "tests/gtest_shim.h"

/* A hundred years: no test fails on the day they expire. */
static const char script[] =
    "set -e; cd \"$0\"\n"
    "make() {\n" /* name, then how it is signed and what for */
    "  name=$1; shift\n"
    "  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 36500 \\\n"
    "    -subj /CN=$name -keyout $name.key -out $name.pem \"$@\"\n"
    "}\n"
    "signed() { make $1 -CA $2.pem -CAkey $2.key -addext basicConstraints=CA:FALSE \\\n"
    "  -addext subjectAltName=$3; }\n" /* name, who signs it, for which hosts */
    "make ca -addext keyUsage=critical,keyCertSign\n"
    "make other_ca -addext keyUsage=critical,keyCertSign\n"
    "signed server ca DNS:localhost,IP:127.0.0.1,IP:::1\n"
    "signed elsewhere ca DNS:elsewhere.example\n"
    "signed client ca DNS:worker\n"
    "signed other_server other_ca DNS:localhost,IP:127.0.0.1\n"
    "signed other_client other_ca DNS:worker\n";

void
certificates_make (const char *folder)
{
  const char *const command[] = {"sh", "-c", script, folder, NULL};
  g_autoptr (GError) error = NULL;
  g_autofree char *said = NULL;
  int status = -1;
  MUSTER_ASSERT_TRUE (g_spawn_sync (NULL, (char **)command, NULL, G_SPAWN_SEARCH_PATH, NULL, NULL,
                                    NULL, &said, &status, &error));
  if (!g_spawn_check_wait_status (status, NULL))
    MUSTER_FAIL ("openssl: %s", said);
}

char *
certificates_path (const char *folder, const char *name)
{
  return g_build_filename (folder, name, NULL);
}

char *
certificates_write (const char *folder, const char *name, const char *text)
{
  g_autofree char *path = certificates_path (folder, name);
  g_autoptr (GError) error = NULL;
  g_file_set_contents_full (path, text, -1, G_FILE_SET_CONTENTS_CONSISTENT, 0600, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return g_steal_pointer (&path);
}
