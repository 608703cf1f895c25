// An HTTP server on boost::asio, three threads in one io_context; stands still on /slow, ends on /quit, prints its threads and what it
// did.  usage: asio_server PORT
#include <boost/asio.hpp>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>

using boost::asio::ip::tcp;
using boost::system::error_code;

static boost::asio::io_context io;
static std::atomic<unsigned long> accepts, answers;

struct Session : std::enable_shared_from_this<Session> {
	tcp::socket socket{io};
	boost::asio::streambuf in;
	std::string out;

	void read()
	{
		auto self = shared_from_this();
		boost::asio::async_read_until(socket, in, "\r\n\r\n", [self](error_code e, size_t n) { if (!e) self->answer(n); });
	}

	void answer(size_t n)
	{
		std::string head(boost::asio::buffers_begin(in.data()), boost::asio::buffers_begin(in.data()) + static_cast<long>(n));
		in.consume(n);
		size_t from = head.find(' ') + 1;
		std::string path = head.substr(from, head.find(' ', from) - from);
		if (path == "/slow")
			std::this_thread::sleep_for(std::chrono::milliseconds(300));
		out = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(path.size()) + "\r\n\r\n" + path;
		answers++;
		auto self = shared_from_this();
		boost::asio::async_write(socket, boost::asio::buffer(out), [self, path](error_code e, size_t) {
			if (path == "/quit")
				io.stop();
			else if (!e)
				self->read();
		});
	}
};

static void accept_next(tcp::acceptor &acceptor)
{
	auto session = std::make_shared<Session>();
	acceptor.async_accept(session->socket, [session, &acceptor](error_code e) {
		if (e)
			return;
		accepts++;
		session->socket.set_option(tcp::no_delay(true));
		session->read();
		accept_next(acceptor);
	});
}

int main(int argc, char **argv)
{
	auto port = static_cast<unsigned short>(argc > 1 ? atoi(argv[1]) : 0);
	tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), port});
	accept_next(acceptor);
	std::atomic<long> tids[3];
	std::vector<std::thread> threads;
	for (auto &tid : tids)
		threads.emplace_back([&tid] {
			tid = syscall(SYS_gettid);
			io.run();
		});
	for (auto &t : threads)
		t.join();
	printf("TRUTH workers=%ld,%ld,%ld accepts=%lu answers=%lu\n", tids[0].load(), tids[1].load(), tids[2].load(), accepts.load(), answers.load());
	return 0;
}
