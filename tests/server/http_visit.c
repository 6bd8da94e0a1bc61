// SPDX-License-Identifier: Apache-2.0
#include "tests/server/http_visit.h"

#include "engine/session/local_master.h"

HttpFixture
http_start (void)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (MusterMaster) local = muster_local_master_new ();
  HttpFixture f = {.server = muster_server_new (local, NULL)};
  f.port = muster_server_listen_http (f.server, "127.0.0.1:0", &error);
  MUSTER_EXPECT_NO_ERROR (error);
  muster_server_start (f.server);
  return f;
}

void
http_clear (HttpFixture *f)
{
  g_clear_pointer (&f->server, muster_server_free);
}

GSocketConnection *
http_visit (HttpFixture *f)
{
  g_autoptr (GError) error = NULL;
  g_autoptr (GSocketClient) client = g_socket_client_new ();
  g_socket_client_set_timeout (client, 30);
  g_socket_client_set_enable_proxy (client, FALSE);
  GSocketConnection *connection =
      g_socket_client_connect_to_host (client, "127.0.0.1", (guint16)f->port, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return connection;
}

char *
http_hear (GSocketConnection *connection)
{
  GInputStream *in = g_io_stream_get_input_stream (G_IO_STREAM (connection));
  g_autoptr (GString) answer = g_string_new (NULL);
  char part[4096];
  for (gssize n; (n = g_input_stream_read (in, part, sizeof part, NULL, NULL)) > 0;)
    g_string_append_len (answer, part, n);
  return g_strdup (answer->str);
}

void
http_say (GSocketConnection *connection, const char *text)
{
  GOutputStream *out = g_io_stream_get_output_stream (G_IO_STREAM (connection));
  (void)g_output_stream_write_all (out, text, strlen (text), NULL, NULL, NULL);
}

char *
http_ask_with (HttpFixture *f, const char *method, const char *path, const char *headers)
{
  g_autoptr (GSocketConnection) connection = http_visit (f);
  if (connection == NULL)
    return NULL;
  g_autofree char *request =
      g_strdup_printf ("%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", method, path, headers);
  http_say (connection, request);
  return http_hear (connection);
}

char *
http_ask (HttpFixture *f, const char *method, const char *path)
{
  return http_ask_with (f, method, path, "");
}

void
http_announce (HttpFixture *f, const char *model, gint64 epoch, MusterChiefPhase phase, gint64 step)
{
  g_autoptr (GError) error = NULL;
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)model;
  announced.epoch = epoch;
  announced.phase = phase;
  announced.step = step;
  MUSTER_EXPECT_TRUE (muster_chief_registry_announce (f->server->registry, &announced, &error));
  MUSTER_EXPECT_NO_ERROR (error);
}

gint64
http_claim (HttpFixture *f, const char *model)
{
  g_autoptr (GError) error = NULL;
  const MusterClaim wanted = {.model = model, .task = "worker:0"};
  gint64 epoch =
      muster_chief_registry_claim (f->server->registry, &wanted, "host:1", NULL, NULL, &error);
  MUSTER_EXPECT_NO_ERROR (error);
  return epoch;
}

void
http_give_models (HttpFixture *f)
{
  gint64 epoch = http_claim (f, "digits");
  http_announce (f, "digits", epoch, MUSTER_CHIEF_PREPARED, -1);
  http_announce (f, "digits", epoch, MUSTER_CHIEF_TRAINING, 120);
  MusterSaveStatus saves = {.step = {110, 110, 100, -1},
                            .last_us = {2000, 1000, 500000, 250000},
                            .total_us = {4000, 2000, 1000000, 500000},
                            .last_bytes = 12345,
                            .n_durable = 2,
                            .n_failed = 1,
                            .saving = (char *)"run/model.ckpt-110",
                            .saving_step = 110};
  MusterAnnouncement announced = MUSTER_ANNOUNCEMENT_INIT;
  announced.model = (char *)"digits";
  announced.epoch = epoch;
  announced.saves = &saves;
  MusterGoodput goodput = {
      .began_us = 1,
      .spent_us = {[MUSTER_TIME_TRAINING] = 3 * MUSTER_SECOND, [MUSTER_TIME_DOWN] = MUSTER_SECOND},
      .n_restarts = 2,
      .steps_again = 5};
  announced.goodput = &goodput;
  MUSTER_EXPECT_TRUE (muster_chief_registry_announce (f->server->registry, &announced, NULL));
  (void)http_claim (f, "odd \"name\"\\of a model");
}

char *
http_ask_as (HttpFixture *f, const char *path, const char *host)
{
  g_autoptr (GSocketConnection) connection = http_visit (f);
  g_autofree char *line = *host != '\0' ? g_strdup_printf ("Host: %s\r\n", host) : g_strdup ("");
  g_autofree char *request =
      g_strdup_printf ("GET %s HTTP/1.%d\r\n%s\r\n", path, *host != '\0', line);
  http_say (connection, request);
  return http_hear (connection);
}

gboolean
http_hears (GSocketConnection *connection, const char *words)
{
  GInputStream *in = g_io_stream_get_input_stream (G_IO_STREAM (connection));
  g_autoptr (GString) answer = g_string_new (NULL);
  char part[4096];
  while (strstr (answer->str, words) == NULL) {
    gssize n = g_input_stream_read (in, part, sizeof part, NULL, NULL);
    if (n <= 0)
      return FALSE;
    g_string_append_len (answer, part, n);
  }
  return TRUE;
}
