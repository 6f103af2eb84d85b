/**
 * A port of this host that nobody listens on at the moment, below those that Linux gives to outgoing connections: one of
 * these may be taken by a connection before the process that gets it as its own listens there.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 22_000)
    const server = serverAt(port)
    if (server === null) continue
    await server.stop(true)
    return port
  }
}

function serverAt(port: number): Bun.Server<undefined> | null {
  try {
    return Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response() })
  } catch {
    // Another process listens there.
    return null
  }
}
