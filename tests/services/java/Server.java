import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;

/** The JDK's HTTP server with a pool of three; stands still on /slow, ends on /quit, prints what it answered.  usage: java Server PORT */
public class Server {
    private static final AtomicInteger answered = new AtomicInteger();

    private static void answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        if (path.equals("/slow")) {
            try {
                Thread.sleep(300);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
            }
        }
        byte[] body = path.getBytes();
        answered.incrementAndGet();
        exchange.sendResponseHeaders(200, body.length);
        exchange.getResponseBody().write(body);
        exchange.close();
        if (path.equals("/quit")) {
            System.out.println("TRUTH answered=" + answered);
            System.exit(0);
        }
    }

    public static void main(String[] args) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), Integer.parseInt(args[0])), 64);
        ExecutorService pool = Executors.newFixedThreadPool(3);
        server.setExecutor(pool);
        server.createContext("/", Server::answer);
        server.start();
    }
}
