/* This file writes responses in JSON, and error responses. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "verde/commit/json.h"
#include "verde/provide/internal.h"

int64_t vd_unix_time(void) {
    return (int64_t)time(NULL);
}

void vd_reply(vd_response *response, int status, json_t *object) {
    response->status = status;
    response->content_type = "application/json";
    if (!object || !vd_json_dump(object, &response->body))
        response->status = 500;
    json_decref(object);
}

void vd_reply_error(vd_response *response, int status, const char *format, ...) {
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    vd_reply(response, status, json_pack("{ss}", "error", text));
}

void vd_reply_trouble(vd_daemon *daemon, vd_response *response, const vd_err *err) {
    vd_trouble_tell(&daemon->trouble, &daemon->options, err->text);
    vd_reply_error(response, 503, "trouble of this provider");
}
