/* Timers of a simulated process: descriptors of timerfd_create(2), and SIGALRM. */
#pragma once

/* Does what the due timers of this process do. */
void timers_serve(void);

/* Ends the timer of a descriptor that is closed. */
void timers_forget(int descriptor);
