/* Socket addresses as the user writes them. */
#include "address.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "util.h"

#define HOST_MAX 256

static void parse_unix(struct address *address, const char *path)
{
    struct sockaddr_un *local = (struct sockaddr_un *) &address->storage;
    size_t length = strlen(path);

    if (length == 0 || length >= sizeof local->sun_path) {
        fatal("the path of a UNIX socket has between 1 and %zu characters: '%s'",
              sizeof local->sun_path - 1, path);
    }
    local->sun_family = AF_UNIX;
    memcpy(local->sun_path, path, length);
    address->size = sizeof *local;
}

/* HOST:PORT; an IPv6 host is written in brackets. */
static void split_host_port(const char *text, char host[HOST_MAX], const char **port)
{
    const char *colon = strrchr(text, ':');
    const char *end = colon;

    if (colon == NULL || colon == text || colon[1] == '\0' || colon - text >= HOST_MAX) {
        fatal("an address after tcp: is HOST:PORT, not '%s'", text);
    }
    if (text[0] == '[' && colon[-1] == ']') {
        text++;
        end--;
    }
    memcpy(host, text, (size_t) (end - text));
    host[end - text] = '\0';
    *port = colon + 1;
}

static void parse_tcp(struct address *address, const char *text)
{
    /* IPv4 if there is a choice: "localhost" is both, but controllers listen on 127.0.0.1. */
    struct addrinfo hints = {
        .ai_family = AF_INET, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found;
    char host[HOST_MAX];
    const char *port;
    int error;

    split_host_port(text, host, &port);
    error = getaddrinfo(host, port, &hints, &found);
    if (error != 0) {
        hints.ai_family = AF_UNSPEC;
        error = getaddrinfo(host, port, &hints, &found);
    }
    if (error != 0) {
        fatal("cannot find the address %s: %s", text, gai_strerror(error));
    }
    memcpy(&address->storage, found->ai_addr, found->ai_addrlen);
    address->size = found->ai_addrlen;
    freeaddrinfo(found);
}

void address_parse(struct address *address, const char *text)
{
    memset(address, 0, sizeof *address);
    if (strncmp(text, "unix:", 5) == 0) {
        parse_unix(address, text + 5);
    } else if (strncmp(text, "tcp:", 4) == 0) {
        parse_tcp(address, text + 4);
    } else {
        fatal("an address is tcp:HOST:PORT or unix:PATH, not '%s'", text);
    }
}

void address_unlink(const struct address *address)
{
    if (address->storage.ss_family == AF_UNIX) {
        unlink(((const struct sockaddr_un *) &address->storage)->sun_path);
    }
}
