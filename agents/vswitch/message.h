/* Composing OpenFlow messages. */
#ifndef MESSAGE_H
#define MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "buf.h"
#include "openflow.h"
#include "openflow_errors.h"

#define MESSAGE_MAX UINT16_MAX

/* Starts a message in an empty buffer. Returns its first `size` bytes, zero but for the header;
 * the pointer is good until something is added. `xid` is in network order, as received. */
void *message_begin(struct buf *message, enum ofp_type type, uint32_t xid, size_t size);
/* Fills in the length, once everything has been added. */
void message_finish(struct buf *message);

/* A complete error message about a request of that many bytes. */
void message_error(struct buf *message, of_result error, const struct ofp_header *request,
                   size_t request_size);

#endif
