// Four slow pool jobs (open of a FIFO without writer) fill libuv's pool; a trivial stat waits.
const fs = require('fs'), { execFileSync } = require('child_process');
const p = `${process.argv[2]}/fifo`;
execFileSync('mkfifo', [p]);
let open = 0;
for (let i = 0; i < 4; i++) fs.open(p, 'r', (e, fd) => { fs.close(fd, () => { if (++open === 4) fs.unlinkSync(p); }); });
setTimeout(() => {
  const t = process.hrtime.bigint();
  fs.stat('/', () => console.log(`TRUTH pool_threads=4 blocked_in=open stat_ms=${Number(process.hrtime.bigint() - t) / 1e6 | 0} loop_idle=1`));
}, 20);
setTimeout(() => { const w = fs.openSync(p, 'w'); setTimeout(() => fs.closeSync(w), 50); }, 350);
