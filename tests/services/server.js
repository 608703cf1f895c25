// An HTTP server on libuv's loop; stands still on /slow, ends on /quit.  usage: node server.js PORT
const http = require('http');
const server = http.createServer((req, res) => {
  res.sendDate = false;
  if (req.url === '/slow') { const t = process.cpuUsage().user; while (process.cpuUsage().user - t < 300e3); }
  res.end(`hello ${req.url}`);
  if (req.url === '/quit') { server.close(); server.closeAllConnections?.(); setTimeout(() => process.exit(0), 50); }
});
server.listen(Number(process.argv[2]), '127.0.0.1');
