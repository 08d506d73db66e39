/* Answers an echo_request of four bytes, WAY 0 NUMBER NUMBER, and prints the number in one way or another. */
#include <stdarg.h>
#include <stdio.h>
#include "echoing.h"

static int note(char *text, const char *format, ...)
{
    va_list list;
    int length;
    va_start(list, format);
    length = vsnprintf(text, 64, format, list);
    va_end(list);
    fputs(text, stderr);
    return length;
}

static void answer(unsigned char *m)
{
    unsigned number = m[10] << 8 | m[11];
    char text[64] = "", *made = NULL, *other, *end;
    int length;
    FILE *file;
    switch (m[8]) {
    case 0: /* a log */
        fprintf(stderr, "the number is %u\n", number);
        snprintf(text, sizeof text, "%u", number);
        fputs(text, stderr);
        if (write(2, text, strlen(text)) < 0)
            exit(1);
        reply(m, "log", 3);
        return;
    case 1: /* to the controller */
        reply(m, text, snprintf(text, sizeof text, "%u", number));
        return;
    case 2: /* a decision */
        sprintf(text, "%u", number);
        reply(m, strcmp(text, "77") ? "other" : "77", 2);
        return;
    case 3: /* nothing that depends on the number */
        snprintf(text, sizeof text, "way %d", 3);
        reply(m, text, strlen(text));
        return;
    case 4: /* memory of its own */
        if (asprintf(&made, "<%x>", number) < 0)
            exit(1);
        reply(m, made, strlen(made));
        free(made);
        return;
    case 5: /* a file that is the control channel */
        file = fdopen(dup(control), "w");
        fprintf(file, "%c%c%c%c%c%c%c%c", 1, 3, 0, 13, m[4], m[5], m[6], m[7]);
        fprintf(file, "%05u", number);
        fclose(file);
        return;
    case 6: /* to the controller at once */
        dprintf(control, "%c%c%c%c%c%c%c%c%05u", 1, 3, 0, 13, m[4], m[5], m[6], m[7], number);
        return;
    case 7: /* only its length, to the controller */
        reply(m, "abcdefghijkl", snprintf(text, sizeof text, "%u", number));
        return;
    case 8: /* a length that is always the same */
        reply(m, "abcdefghijkl", sprintf(text, "%04x,%-6d,%c", number, number, number));
        return;
    case 9: /* a log line in pieces */
        length = snprintf(text, sizeof text, "%u of %s", number, "them");
        length += snprintf(text + length, sizeof text - length, " and %d", -number);
        if (length >= (int) sizeof text - 2)
            length = sizeof text - 3;
        text[length++] = '\n';
        text[length] = 0;
        if (write(2, text, length) != length)
            exit(1);
        reply(m, "log", 3);
        return;
    case 10: /* what is behind the text */
        memset(text, '.', sizeof text - 1);
        sprintf(text, "%u", number);
        reply(m, text + 4, 2);
        return;
    case 11: /* its length decides */
        sprintf(text, "%u", number);
        reply(m, strlen(text) > 3 ? "long" : "tiny", 4);
        return;
    case 12: /* its length could decide, but always in one way */
        sprintf(text, "%u", number);
        reply(m, strlen(text) > 5 || !strlen(text) ? "no" : "ok", 2);
        return;
    case 13: /* a number that was looked at before has three digits */
        if (number >= 100 && number < 1000)
            reply(m, "abcdefghijkl", sprintf(text, "%u", number));
        return;
    case 14: /* a log function */
        reply(m, "abcdefghijkl", note(text, "%s%c %03o %#hhx %.*s %5u", "a", 'b', number & 63, 1 | number & 15, 2, text, number));
        return;
    case 15: /* a copy, for a log */
        if (asprintf(&made, "<%x>", number) < 0)
            exit(1);
        other = malloc(strlen(made) + 1);
        memcpy(other, made, strlen(made) + 1);
        fprintf(stderr, "%s: %s\n", other, strlen(other) > 6 ? "no" : "yes");
        free(other);
        free(made);
        reply(m, "log", 3);
        return;
    case 16: /* a pointer that moves */
        end = text + sprintf(text, "%u", number);
        end[0] = '!';
        reply(m, text, 2);
        return;
    default: /* text that is too long for its place */
        length = snprintf(text, 4, "%u", number);
        reply(m, length > 5 ? "no" : "ok", 2);
    }
}
