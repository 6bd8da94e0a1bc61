// SPDX-License-Identifier: Apache-2.0
#include "tests/wire/certificates.h"

#include "tests/gtest_shim.h"

static const char script[] =
    "set -e; cd \"$0\"\n"
    "key() { openssl ecparam -genkey -name prime256v1 -noout -out $1.key; }\n"
    "ca() {\n"
    "  key $1\n"
    "  openssl req -x509 -new -key $1.key -subj /CN=$1 -days 36500 -out $1.pem \\\n"
    "    -addext keyUsage=critical,keyCertSign\n"
    "}\n"
    "signed() {\n" /* name, who signs it, for which hosts */
    "  key $1\n"
    "  openssl req -new -key $1.key -subj /CN=$1 -out $1.csr\n"
    "  echo subjectAltName=$3 >$1.ext\n"
    "  openssl x509 -req -in $1.csr -CA $2.pem -CAkey $2.key -set_serial 1 -days 36500 \\\n"
    "    -extfile $1.ext -out $1.pem\n"
    "}\n"
    "ca ca; ca other_ca\n"
    "signed server ca DNS:localhost,IP:127.0.0.1,IP:::1\n"
    "signed elsewhere ca DNS:elsewhere.example\n"
    "signed client ca DNS:worker\n"
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
  g_file_set_contents (path, text, -1, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return g_steal_pointer (&path);
}
