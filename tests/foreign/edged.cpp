// edged: C++ with exceptions for errors and an unordered_map for stations; edge-triggered epoll over everything,
// with a signalfd, a timerfd and an eventfd beside the sockets; a listener that is asked until it says EAGAIN.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

namespace {

using Bytes = std::vector<uint8_t>;

struct Refusal : std::runtime_error {
    Refusal(unsigned type, unsigned code) : std::runtime_error("refused " + std::to_string(code)), type(type), code(code) {}
    unsigned type, code;
};

struct Watched {
    explicit Watched(int fd) : fd(fd) { if (fd < 0) throw std::system_error(errno, std::generic_category()); }
    virtual ~Watched() { close(fd); }
    virtual void ready() = 0;
    const int fd;
};

int poller;
std::unique_ptr<Watched> controller;
std::map<unsigned, int> ports;
std::unordered_map<std::string, unsigned> stations;
uint64_t ticks, wakes;
int waker;

void watch(Watched *w)
{
    epoll_event e{};
    e.events = EPOLLIN | EPOLLRDHUP | EPOLLET;
    e.data.ptr = w;
    if (epoll_ctl(poller, EPOLL_CTL_ADD, w->fd, &e)) throw std::system_error(errno, std::generic_category());
}

unsigned get16(const Bytes &b, size_t at) { return b.at(at) << 8 | b.at(at + 1); }

Bytes message(unsigned type, const Bytes &request, const Bytes &body)
{
    size_t size = 8 + body.size();
    Bytes m{1, uint8_t(type), uint8_t(size >> 8), uint8_t(size)};
    m.insert(m.end(), request.begin() + 4, request.begin() + 8);
    m.insert(m.end(), body.begin(), body.end());
    return m;
}

void say(const Bytes &m) { if (controller && write(controller->fd, m.data(), m.size()) < 0) controller.reset(); }

void packet_out(const Bytes &m)
{
    size_t end = 16 + get16(m, 14);
    if (end > m.size()) throw Refusal(1, 6);
    for (size_t at = 16; at < end; at += 8) {
        if (get16(m, at)) throw Refusal(2, 0);
        unsigned to = get16(m, at + 4);
        if (to == 0xfffb) {
            for (auto &[number, fd] : ports)
                if (number != get16(m, 12)) send(fd, &m[end], m.size() - end, 0);
            continue;
        }
        try {
            send(ports.at(to), &m[end], m.size() - end, 0);
        } catch (const std::out_of_range &) {
            throw Refusal(2, 4);
        }
    }
}

void obey(const Bytes &m)
{
    switch (m[1]) {
    case 2: say(message(3, m, Bytes(m.begin() + 8, m.end()))); break;
    case 5: {
        Bytes body(24 + 48 * ports.size());
        body[7] = 1;
        size_t at = 24;
        for (auto &[number, fd] : ports) {
            body[at + 1] = number;
            std::string name = "edge" + std::to_string(number);
            std::copy(name.begin(), name.end(), body.begin() + at + 8);
            at += 48;
        }
        say(message(6, m, body));
        break;
    }
    case 0: case 9: break;
    case 13: packet_out(m); break;
    case 18: say(message(19, m, {})); break;
    default: throw Refusal(1, 1);
    }
    uint64_t one = 1;
    if (write(waker, &one, sizeof one) != sizeof one) throw std::logic_error("waker");
}

struct Controller : Watched {
    using Watched::Watched;
    Bytes got;
    void ready() override
    {
        std::array<uint8_t, 512> part;
        for (;;) {
            ssize_t n = read(fd, part.data(), part.size());
            if (n < 0 && errno == EAGAIN) break;
            if (n <= 0) { controller.reset(); return; }
            got.insert(got.end(), part.begin(), part.begin() + n);
        }
        while (got.size() >= 8 && got.size() >= get16(got, 2)) {
            Bytes m(got.begin(), got.begin() + std::max(8u, get16(got, 2)));
            got.erase(got.begin(), got.begin() + m.size());
            try {
                obey(m);
            } catch (const Refusal &r) {
                say(message(1, m, {uint8_t(r.type >> 8), uint8_t(r.type), uint8_t(r.code >> 8), uint8_t(r.code)}));
            }
        }
    }
};

struct Listener : Watched {
    using Watched::Watched;
    void ready() override
    {
        for (;;) {
            int c = accept4(fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
            if (c < 0) { if (errno == EAGAIN) return; throw std::system_error(errno, std::generic_category()); }
            controller = std::make_unique<Controller>(c);
            watch(controller.get());
            say({1, 0, 0, 8, 0, 0, 0, 9});
        }
    }
};

struct Port : Watched {
    Port(int fd, unsigned number) : Watched(fd), number(number) {}
    unsigned number;
    void ready() override
    {
        Bytes frame(2048);
        for (ssize_t n; (n = recv(fd, frame.data(), frame.size(), 0)) > 0;) {
            stations[std::string(frame.begin() + 6, frame.begin() + 12)] = number;
            auto known = stations.find(std::string(frame.begin(), frame.begin() + 6));
            if (known != stations.end()) { send(ports[known->second], frame.data(), n, 0); continue; }
            Bytes body{255, 255, 255, 255, uint8_t(n >> 8), uint8_t(n), 0, uint8_t(number), 0, 0};
            body.insert(body.end(), frame.begin(), frame.begin() + n);
            say(message(10, Bytes(8), body));
        }
    }
};

struct Counter : Watched {
    Counter(int fd, uint64_t &total) : Watched(fd), total(total) {}
    uint64_t &total;
    void ready() override { uint64_t n; while (read(fd, &n, sizeof n) == sizeof n) total += n; }
};

struct Signals : Watched {
    using Watched::Watched;
    void ready() override { signalfd_siginfo i; while (read(fd, &i, sizeof i) == sizeof i) if (i.ssi_signo == SIGTERM) _exit(0); }
};

int unix_socket(int type, const std::string &path, bool to)
{
    static int fd;
    sockaddr_un a{};
    a.sun_family = AF_UNIX;
    path.copy(a.sun_path, sizeof a.sun_path - 1);
    if (!to) fd = socket(AF_UNIX, type | SOCK_NONBLOCK, 0);
    if ((to ? connect : bind)(fd, reinterpret_cast<sockaddr *>(&a), sizeof a)) throw std::runtime_error(path);
    return fd;
}

}

int main(int argc, char **argv)
{
    std::vector<std::unique_ptr<Watched>> all;
    poller = epoll_create1(EPOLL_CLOEXEC);
    sigset_t some;
    sigemptyset(&some);
    sigaddset(&some, SIGTERM);
    sigaddset(&some, SIGHUP);
    sigprocmask(SIG_BLOCK, &some, nullptr);
    signal(SIGPIPE, SIG_IGN);
    itimerspec every{{0, 50000000}, {0, 50000000}};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    timerfd_settime(timer, 0, &every, nullptr);
    waker = eventfd(0, EFD_NONBLOCK);
    all.push_back(std::make_unique<Signals>(signalfd(-1, &some, SFD_NONBLOCK)));
    all.push_back(std::make_unique<Counter>(timer, ticks));
    all.push_back(std::make_unique<Counter>(waker, wakes));
    int listener = unix_socket(SOCK_STREAM, argv[1], false);
    listen(listener, 4);
    all.push_back(std::make_unique<Listener>(listener));
    for (int i = 2; i < argc; i++) {
        std::string pair = argv[i];
        size_t comma = pair.find(',');
        unix_socket(SOCK_DGRAM, pair.substr(0, comma), false);
        int fd = ports[i - 1] = unix_socket(SOCK_DGRAM, pair.substr(comma + 1), true);
        all.push_back(std::make_unique<Port>(fd, i - 1));
    }
    for (auto &w : all) watch(w.get());
    for (;;) {
        std::array<epoll_event, 3> events;
        int n = epoll_wait(poller, events.data(), events.size(), -1);
        for (int i = 0; i < n; i++) static_cast<Watched *>(events[i].data.ptr)->ready();
    }
}
