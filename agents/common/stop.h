/* Ending on SIGINT or SIGTERM: the signal becomes an event of the poll loop like any other. */
#ifndef STOP_H
#define STOP_H

/* Catches the signals.  Returns a descriptor that becomes readable when the agent is to end. */
int stop_open(void);
void stop_close(void);

#endif
