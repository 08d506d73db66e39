/* Socket addresses as the user writes them: tcp:HOST:PORT or unix:PATH. */
#ifndef ADDRESS_H
#define ADDRESS_H

#include <sys/socket.h>

struct address {
    struct sockaddr_storage storage;
    socklen_t size;
};

/* Ends the process with a message if the text is not an address. */
void address_parse(struct address *address, const char *text);
/* Removes the file of a UNIX address; does nothing for others. */
void address_unlink(const struct address *address);

#endif
