#include "message.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "util.h"

#define INITIAL_CAPACITY 256

/* The specification wants at least 64 bytes of the offending message in an error. */
#define ERROR_QUOTE 64

void *message_start(struct message *message, enum ofp_type type, uint32_t xid, size_t size)
{
    struct ofp_header *header;

    message->size = 0;
    message->capacity = size > INITIAL_CAPACITY ? size : INITIAL_CAPACITY;
    message->data = xmalloc(message->capacity);
    header = message_put(message, size);
    header->version = OFP_VERSION;
    header->type = type;
    header->xid = xid;
    return header;
}

void *message_put(struct message *message, size_t size)
{
    void *added;

    if (message->size + size > message->capacity) {
        message->capacity = 2 * (message->size + size);
        message->data = xrealloc(message->data, message->capacity);
    }
    added = message->data + message->size;
    memset(added, 0, size);
    message->size += size;
    return added;
}

void message_finish(struct message *message)
{
    struct ofp_header *header = (struct ofp_header *) message->data;

    header->length = htons((uint16_t) message->size);
}

void message_send(struct message *message, struct channel *channel)
{
    message_finish(message);
    channel_send(channel, message->data, message->size);
    message_free(message);
}

void message_free(struct message *message)
{
    free(message->data);
    message->data = NULL;
}

void message_put_string(char *to, size_t size, const char *text)
{
    size_t length = strnlen(text, size - 1);

    memcpy(to, text, length);
    memset(to + length, 0, size - length);
}

void send_error(struct channel *channel, const struct ofp_header *request, size_t length,
                enum ofp_error_type type, uint16_t code)
{
    size_t quoted = length < ERROR_QUOTE ? length : ERROR_QUOTE;
    struct message message;
    struct ofp_error_msg *error;

    LOG("sending error type %u code %u", (unsigned) type, code);
    error = message_start(&message, OFPT_ERROR, request->xid, sizeof *error + quoted);
    error->type = htons((uint16_t) type);
    error->code = htons(code);
    memcpy(error->data, request, quoted);
    message_send(&message, channel);
}

void send_echo_reply(struct channel *channel, const struct ofp_header *request)
{
    size_t length = ntohs(request->length);
    struct message message;
    struct ofp_header *reply;

    reply = message_start(&message, OFPT_ECHO_REPLY, request->xid, length);
    memcpy(reply + 1, request + 1, length - sizeof *request);
    message_send(&message, channel);
}

void send_barrier_reply(struct channel *channel, const struct ofp_header *request)
{
    struct message message;

    message_start(&message, OFPT_BARRIER_REPLY, request->xid, sizeof(struct ofp_header));
    message_send(&message, channel);
}
