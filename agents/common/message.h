/* Composing OpenFlow messages. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "channel.h"
#include "openflow.h"

/* A message being composed; its memory is released when it is sent. */
struct message {
    uint8_t *data;
    size_t size;
    size_t capacity;
};

/* Starts a message of 'size' zeroed bytes behind a filled header ('xid' in network byte order).
 * Returns its first byte. */
void *message_start(struct message *message, enum ofp_type type, uint32_t xid, size_t size);

/* Appends 'size' zeroed bytes and returns them.  Earlier pointers into the message may move. */
void *message_put(struct message *message, size_t size);

/* Writes the length into the header. */
void message_finish(struct message *message);

/* Finishes the message, sends it and releases its memory. */
void message_send(struct message *message, struct channel *channel);
void message_free(struct message *message);

/* Copies 'text' into the field 'to' of 'size' bytes, always terminated. */
void message_put_string(char *to, size_t size, const char *text);

/* Tells the controller what is wrong with 'request', of which 'length' bytes are valid. */
void send_error(struct channel *channel, const struct ofp_header *request, size_t length,
                enum ofp_error_type type, uint16_t code);

/* Answers an echo request or a barrier request. */
void send_echo_reply(struct channel *channel, const struct ofp_header *request);
void send_barrier_reply(struct channel *channel, const struct ofp_header *request);

#endif
