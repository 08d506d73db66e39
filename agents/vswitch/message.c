/* Composing OpenFlow messages. */
#include "message.h"

#include <arpa/inet.h>

#include "util.h"

void *message_begin(struct buf *message, enum ofp_type type, uint32_t xid, size_t size)
{
    struct ofp_header *header = buf_add(message, size);

    header->version = OFP_VERSION;
    header->type = (uint8_t) type;
    header->xid = xid;
    return header;
}

void message_finish(struct buf *message)
{
    struct ofp_header *header = (void *) buf_front(message);

    header->length = htons((uint16_t) buf_size(message));
}

void message_error(struct buf *message, of_result error, const struct ofp_header *request,
                   size_t request_size)
{
    struct ofp_error_msg *reply = message_begin(message, OFPT_ERROR, request->xid, sizeof *reply);

    reply->type = htons(of_error_type(error));
    reply->code = htons(of_error_code(error));
    buf_append(message, request, MIN(request_size, (size_t) OFP_ERROR_QUOTE));
    message_finish(message);
}
