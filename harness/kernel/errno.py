"""System call results that mean failure, as the kernel returns them: negative numbers."""

import errno

EINTR = -errno.EINTR
EAGAIN = -errno.EAGAIN
EBADF = -errno.EBADF
ENOMEM = -errno.ENOMEM
EFAULT = -errno.EFAULT
EINVAL = -errno.EINVAL
ENOTTY = -errno.ENOTTY
ENOENT = -errno.ENOENT
EPERM = -errno.EPERM
EEXIST = -errno.EEXIST
ECHILD = -errno.ECHILD
EPIPE = -errno.EPIPE
ESPIPE = -errno.ESPIPE
ENOSYS = -errno.ENOSYS
ENOTCONN = -errno.ENOTCONN
ECONNREFUSED = -errno.ECONNREFUSED
ENOTSOCK = -errno.ENOTSOCK
EACCES = -errno.EACCES
ETIMEDOUT = -errno.ETIMEDOUT
EOPNOTSUPP = -errno.EOPNOTSUPP
EDESTADDRREQ = -errno.EDESTADDRREQ
