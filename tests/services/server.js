// An HTTP server on libuv's loop; ends on /quit.  usage: node server.js PORT
const http = require('http');
const server = http.createServer((req, res) => {
  res.sendDate = false;
  res.end(`hello ${req.url}`);
  if (req.url === '/quit') { server.close(); server.closeAllConnections?.(); setTimeout(() => process.exit(0), 50); }
});
server.listen(Number(process.argv[2]), '127.0.0.1');
