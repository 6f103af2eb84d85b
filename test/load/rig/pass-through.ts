/**
 * What the gateway is measured against: the least that a proxy on Bun can do, a request passed on and its answer
 * returned. It parses nothing, knows no token, records nothing. The upstream's address is its argument.
 */
const [upstream = ''] = process.argv.slice(2)

const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  fetch: async (request) =>
    fetch(`${upstream}${new URL(request.url).pathname}`, {
      method: request.method,
      headers: { 'content-type': 'application/json', authorization: 'Bearer direct' },
      body: await request.arrayBuffer(),
      signal: request.signal,
    }),
})
console.log(JSON.stringify({ url: server.url.origin }))
// At an exit of its own it writes its profile, where it was asked for one.
process.on('SIGTERM', () => process.exit(0))
