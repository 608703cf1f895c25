/*
 * Which epoll instance an eventfd wakes: learned from epoll_ctl, so that a write to the eventfd names the waker.
 * Only descriptors below a limit are tracked; the others have no waker to show.
 */
#ifndef D9_INTERPOSE_EVENTFD_H
#define D9_INTERPOSE_EVENTFD_H

void d9_eventfd_made(int fd);
/* fd is something else from now on (-1: nothing happened). */
void d9_eventfd_forget(int fd);
/* fd is about to be closed. */
void d9_eventfd_closes(int fd);
/* fd is added to epfd: if it is an eventfd still (numbers are reused), its writes wake epfd. */
void d9_eventfd_watched(int fd, int epfd);
/* fd is written to: note the calling thread as waker. */
void d9_eventfd_wakes(int fd);

#endif
